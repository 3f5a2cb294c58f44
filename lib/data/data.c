/* data.c - what can be asked of the numbers of any list */
#include "config.h"
#include "data/data.h"
#include "base/compiler.h"

#include <float.h>
#include <math.h>

float gg_data_largest(const struct gg_data_rows *r, uint64_t first, uint64_t n,
                      float largest, float *buf, uint64_t size)
{
    for (uint64_t k; n; first += k, n -= k) {
        k = GG_MIN(n, size);
        gg_data_read(r, first, k, buf);
        for (uint64_t e = 0; e < k; e++) {
            float x = fabsf(buf[e]);
            if (x > largest && x <= FLT_MAX)
                largest = x;
        }
    }
    return largest;
}
