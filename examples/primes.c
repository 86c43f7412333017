/* How many primes are there below two million? */
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    const size_t limit = 2000000;
    unsigned char *composite = calloc(limit, 1);
    unsigned count = 0;

    if (composite == NULL)
        return 1;
    for (size_t i = 2; i < limit; i++) {
        if (composite[i])
            continue;
        count++;
        for (size_t j = i * i; j < limit; j += i)
            composite[j] = 1;
    }
    printf("%u\n", count);
    free(composite);
    return 0;
}
