"""Steps that solve equations: backward Euler by Newton's method, and its adjoint by the implicit function theorem."""
