# Question: a bakery makes 240 rolls. It sells 5/8 of them before noon at 0.60 each and two thirds of the rest
# in the afternoon at 0.45 each. How much money does it take?


def solution():
    rolls = 240
    before_noon = rolls * 5 // 8
    afternoon = (rolls - before_noon) * 2 // 3
    return before_noon * 0.60 + afternoon * 0.45


print(solution())
