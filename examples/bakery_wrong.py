# The same question as bakery.py, answered with a slip: two thirds of all rolls in the afternoon instead of two thirds of the
# rest. It runs, prints a number and exits with 0. Only the comparison with the right answer tells.
rolls = 240
before_noon = rolls * 5 / 8
afternoon = rolls * 2 / 3
print(before_noon * 0.60 + afternoon * 0.45)
