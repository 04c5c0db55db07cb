"""What can be added to a scene, by kinds of things. `builder.Scene` has all of it."""
