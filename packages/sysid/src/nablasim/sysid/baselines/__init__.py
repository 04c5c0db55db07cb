"""What fits are compared with: guesses, a network that was trained, and gradients estimated by sampling."""
