"""What is minimised: a loss of records over a domain, perturbations of it, and priors."""
