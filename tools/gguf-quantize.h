/* gguf-quantize.h - what the parts of gguf-quantize share */
#ifndef TOOLS_GGUF_QUANTIZE_H
#define TOOLS_GGUF_QUANTIZE_H

#include <gguf/quant.h>

#include <stdbool.h>
#include <stdio.h>

/* One output of a run. */
struct target {
    const char *path;   /* NULL: dry run without one */
    const char *type;   /* as given: a preset's name, or the recipe's file */
    struct gguf_recipe *recipe;
    struct gguf_quant *job;
};

/* The tensors as a table: shape, types, sizes, with explain what decided. */
void print_plan(const struct target *t, bool explain);

/* What encoding did to each tensor. */
void print_loss(const struct target *t);

/* "x.gguf: Q4_K_M, 57 tensors, 11.0 MiB -> 3.5 MiB, 4.95 bits per weight". The
 * message goes to standard error. seconds < 0: nothing was written. */
void print_summary(const struct target *t, double seconds);

/* All of it as one JSON document. */
void print_json(FILE *f, const char *in, const struct target *t, size_t n,
                double seconds);

#endif
