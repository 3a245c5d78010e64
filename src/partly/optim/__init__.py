"""From gradients to changes: optimisers by name, `schedules` of the learning rate, and the average of the weights."""
