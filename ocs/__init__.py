"""Light: optical circuit switches, the wiring of cubes to them, circuits of slices. No clock."""
