"""What the hooks for boosted trees have in common; each framework has a hook of its own."""
