"""Load on a service: when requests arrive, how long they are, who comes back. All by inversion of named uniforms."""
