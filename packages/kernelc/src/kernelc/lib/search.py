"""Search in sorted arrays."""

import kernelc as kc


@kc.func
def lower_bound(array, value):
    low = 0
    high = int(array.shape[0])
    while low < high:
        middle = low + ((high - low) >> 1)
        if array[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low
