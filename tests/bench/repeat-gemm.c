/* SPDX-License-Identifier: MIT */
/* repeat-gemm.c - a product of matrices, some times, for counters
 *
 *   repeat-gemm TIMES TYPE PRECISION M N K [LEVEL]
 *
 * Multiplies M rows of a type by N columns, K steps each, on one thread, with
 * the kernels up to LEVEL (default: all that the machine has). The difference
 * between two runs with different TIMES is the cost of the product: time, or
 * instructions that an emulator or perf counts (doc/machines.md).
 */
#include "config.h"
#include "base/compiler.h"
#include "cpu/matmul.h"
#include "tests/bench/row.h"

static int print_usage(void)
{
    fprintf(stderr, "usage: repeat-gemm TIMES TYPE exact|int16|int8 M N K"
                    " [LEVEL]\n");
    return 2;
}

/* Levels up to the one with the name; 0 if the machine lacks it. */
static uint32_t levels_to(const char *name)
{
    const uint32_t has = gg_kern_cpu_detect();
    for (unsigned i = 0; i < gg_kern_cpu_n_levels; i++)
        if (gg_kern_cpu_levels[i].name &&
            strcmp(gg_kern_cpu_levels[i].name, name) == 0)
            return has & gg_kern_cpu_levels[i].bit
                       ? has & (2 * gg_kern_cpu_levels[i].bit - 1)
                       : 0;
    return 0;
}

int main(int argc, char **argv)
{
    static const char precisions[][6] = { "exact", "int16", "int8" };
    struct gg_cpu_gemm_args a = { 0 };
    struct gg_kern kern;
    unsigned p = 0;
    if (argc < 7)
        return print_usage();
    const struct gguf_dtype_info *dt = gguf_dtype_find_name(argv[2]);
    while (p < GG_LEN(precisions) && strcmp(precisions[p], argv[3]) != 0)
        p++;
    a.m = atoi(argv[4]);
    a.n = atoi(argv[5]);
    a.k = atoi(argv[6]);
    const uint32_t cpu = argc > 7 ? levels_to(argv[7]) : gg_kern_cpu_detect();
    if (!dt || p == GG_LEN(precisions) || (argc > 7 && !cpu) ||
        a.k % dt->block_len)
        return print_usage();
    gg_kern_init(&kern, cpu);
    kern.precision = (enum gg_kern_precision)p;
    a.kern = &kern;
    a.dtype_index = gg_dtype_index(dt->id);
    a.form = gg_kern_gemm_form_of(&kern, a.dtype_index);
    a.w_stride = (size_t)a.k / dt->block_len * dt->block_size;
    a.x_stride = (size_t)a.k * sizeof(float);
    a.y_stride = (size_t)a.m * sizeof(float);
    const size_t w_size = (size_t)a.m * a.w_stride;
    const size_t nx = (size_t)(a.k * a.n);
    unsigned char *w = bench_must(malloc(w_size));
    float *x = bench_must(malloc(nx * sizeof *x));
    a.y = bench_must(malloc((size_t)(a.m * a.n) * sizeof(float)));
    void *work = bench_must(malloc(gg_cpu_gemm_work_size(&a, 1) + 1));
    for (size_t i = 0; i < w_size; i++) /* scales in F16 near 0.05 */
        w[i] = (unsigned char)(0x28 + (i * 2654435761u >> 29));
    for (size_t i = 0; i < nx; i++)
        x[i] = (float)(i % 17) - 8;
    a.w = w;
    a.x = x;
    for (int i = atoi(argv[1]); i > 0; i--)
        gg_cpu_gemm_run(&a, 0, 1, work, NULL);
    free(w);
    free(x);
    free(a.y);
    free(work);
    return 0;
}
