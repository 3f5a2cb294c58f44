/* SPDX-License-Identifier: MIT */
/* clock.h - a monotonic clock */
#ifndef GG_BASE_CLOCK_H
#define GG_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds since some point in the past. */
static inline uint64_t gg_clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#endif
