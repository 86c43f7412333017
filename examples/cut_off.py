# An answer that was cut off at its maximum length, as happens with long ones.
def mean(values):
    return sum(values) / len(values)

print(mean([3, 1, 4, 1, 5
