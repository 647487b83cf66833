"""Sliders for notebooks: a function of a few values, shown anew as they are moved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def play(show: Callable[..., Any], **choices: Sequence[Any]) -> Any:
    """A slider per argument of `show` over the values that it may have, and what `show` returns for those chosen.

    Sliders begin in the middle. Where `ipywidgets` is not installed (`pip install 'opticube[notebook]'`) it is what
    `show` returns for the middle values. The first call is made here, so that its errors stop a notebook.
    """
    middle = {name: values[len(values) // 2] for name, values in choices.items()}
    shown = show(**middle)
    try:
        from ipywidgets import Layout, Output, SelectionSlider, VBox
    except ModuleNotFoundError:
        return shown
    sliders = {
        name: SelectionSlider(
            options=[(str(value), value) for value in values],
            value=middle[name],
            description=name.replace("_", " "),
            continuous_update=False,
            style={"description_width": "10em"},
            layout=Layout(width="32em"),
        )
        for name, values in choices.items()
    }
    # outputs are put into the widget, not caught by it: what runs a notebook can wait for ever for what is caught
    out = Output()
    out.append_display_data(shown)

    def moved(_: Any) -> None:
        found = show(**{name: slider.value for name, slider in sliders.items()})
        out.outputs = ()
        out.append_display_data(found)

    for slider in sliders.values():
        slider.observe(moved, names="value")
    return VBox([*sliders.values(), out])
