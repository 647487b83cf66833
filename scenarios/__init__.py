"""The scenarios that ship with opticube, as YAML files beside this one."""
