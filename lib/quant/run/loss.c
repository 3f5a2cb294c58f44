/* SPDX-License-Identifier: MIT */
/* loss.c - encoding errors, summed chunk by chunk */
#include "config.h"
#include "quant/run/loss.h"
#include "base/os/os.h"

#include <math.h>

void gg_loss_add(struct gg_loss *l, const float *a, const float *b,
                 size_t n_rows, size_t n, const float *weight)
{
    for (size_t row = 0; row < n_rows; row++) {
        double err2 = 0, in2 = 0, sum = 0, max = l->max;
        double weighted = 0, weighted_in = 0;
        size_t count = 0;
        for (size_t i = 0; i < n; i++) {
            double x = a[row * n + i];
            double d = x - (double)b[row * n + i];
            double w = weight ? (double)weight[i] : 1;
            if (!isfinite(d)) {
                if (isfinite(x))
                    err2 = weighted = max = (double)INFINITY;
                continue;
            }
            count++;
            err2 += d * d;
            in2 += x * x;
            sum += w;
            weighted += w * d * d;
            weighted_in += w * x * x;
            max = fabs(d) > max ? fabs(d) : max;
        }
        l->n += (double)count;
        l->err2 += err2;
        l->in2 += in2;
        l->weight += sum;
        l->weighted += weighted;
        l->weighted_in += weighted_in;
        l->max = max;
    }
}

void gg_loss_finish(const struct gg_loss *chunks, size_t n,
                    struct gguf_quant_loss *out)
{
    struct gg_loss l = { 0 };
    for (size_t i = 0; i < n; i++) {
        l.n += chunks[i].n;
        l.err2 += chunks[i].err2;
        l.in2 += chunks[i].in2;
        l.weight += chunks[i].weight;
        l.weighted += chunks[i].weighted;
        l.seconds += chunks[i].seconds;
        l.max = chunks[i].max > l.max ? chunks[i].max : l.max;
    }
    *out = (struct gguf_quant_loss){ .measured = true,
                                     .max = l.max,
                                     .seconds = l.seconds };
    if (l.n > 0) {
        out->rms = sqrt(l.err2 / l.n);
        out->rms_in = sqrt(l.in2 / l.n);
    } else {
        out->rms = l.err2; /* 0 or infinite */
    }
    out->weighted = l.weight > 0 ? sqrt(l.weighted / l.weight) : out->rms;
    out->snr = l.err2 > 0 ? 10 * log10(l.in2 / l.err2) : (double)INFINITY;
}

double gg_loss_clock(void)
{
    return (double)gg_os_thread_ns() * 1e-9;
}
