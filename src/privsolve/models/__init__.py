"""What a release carries and a person uses."""
