"""OPSamp's world: Lipschitz problems on a box."""
