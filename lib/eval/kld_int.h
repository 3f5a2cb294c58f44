/* SPDX-License-Identifier: MIT */
/* kld_int.h - scored tokens and their sums */
#ifndef GG_EVAL_KLD_INT_H
#define GG_EVAL_KLD_INT_H

#include "gguf/kld.h"

/* Sums over tokens; d is x - x_base. */
struct gg_kld_sums {
    uint64_t n, same;
    double x, xx, b, bb, xb, d, dd;
    double kld, kld2, dp, dp2, dp4;
};

struct gguf_kld {
    struct gguf_kld_params p;
    struct gguf_sink sink;
    const struct gguf_scan_info *info; /* the current scan */
    size_t model; /* the compared model among those of the scan */
    struct gguf_kld_token *token;
    size_t n, room;
    size_t n_summed; /* tokens in sums: those of whole chunks */
    struct gg_kld_sums sums;
};

/* q(t) - b(t) */
double gg_kld_dp(const struct gguf_kld_token *t);

#endif
