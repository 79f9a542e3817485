"""Given only black-box access, refute or bound somebody's privacy claim, with stated confidence."""
