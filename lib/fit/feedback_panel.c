/* SPDX-License-Identifier: MIT */
/* feedback_panel.c - feedback of earlier columns on the columns of a panel */
#include "config.h"
#include "fit/feedback_task.h"

#include <string.h>

enum {
    W = GG_FEEDBACK_LANES,
    TILE = GG_FEEDBACK_TILE,
    PANEL_SIZE = GG_FEEDBACK_PANEL_SIZE,
    /* vectors whose errors of a chunk stay in a cache of 32 KiB */
    CACHED = 2
};

void gg_feedback_load(const struct gg_feedback_task *t, const float *rows,
                      size_t from, unsigned n_columns, float *out)
{
    const size_t n = t->job->metric->n;
    for (unsigned v = 0; v < t->n_vectors; v++)
        for (unsigned l = 0; l < W; l++) {
            float *to = out + v * PANEL_SIZE + l;
            const unsigned r = v * W + l;
            if (r < t->n_rows)
                for (unsigned j = 0; j < n_columns; j++)
                    to[j * W] = rows[r * n + from + j];
            else
                for (unsigned j = 0; j < n_columns; j++)
                    to[j * W] = 0;
        }
}

/* Copy elements of rows i .. i + n_i - 1 and of a tile's columns. */
static void pack_tile(float *tile, const float *matrix, size_t n, size_t i,
                      size_t n_i, size_t column)
{
    const float *g = matrix + i * n + column;
    for (size_t k = 0; k < n_i; k++)
        memcpy(tile + k * TILE, g + k * n, TILE * sizeof *tile);
}

/* t->base += err * matrix: rows 0 .. n_i - 1 of the matrix, columns of the
 * panel. */
static void add_product(struct gg_feedback_task *t, const float *matrix,
                        size_t n_i, size_t panel, unsigned n_columns)
{
    const size_t width = t->job->metric->n;
    for (size_t i = 0; i < n_i; i += GG_FEEDBACK_CHUNK) {
        const size_t n = GG_MIN((size_t)GG_FEEDBACK_CHUNK, n_i - i);
        for (unsigned j = 0; j < n_columns; j += TILE)
            pack_tile(t->chunk + j * n, matrix, width, i, n, panel + j);
        for (unsigned v = 0; v < t->n_vectors; v += CACHED)
            for (unsigned j = 0; j < n_columns; j += TILE)
                t->job->kern->product(
                    t->base + v * PANEL_SIZE + j * W, PANEL_SIZE,
                    t->err + (v * width + i) * W, width * W,
                    GG_MIN((unsigned)CACHED, t->n_vectors - v),
                    t->chunk + j * n, n);
    }
}

void gg_feedback_open_panel(struct gg_feedback_task *t, size_t panel,
                            unsigned n_columns)
{
    const struct gg_feedback_metric *m = t->job->metric;
    add_product(t, m->g, panel, panel, n_columns);
    for (unsigned j = TILE; j < n_columns; j += TILE)
        pack_tile(t->inner + j * GG_FEEDBACK_PANEL, m->g, m->n, panel, j,
                  panel + j);
}

void gg_feedback_open_moments(struct gg_feedback_task *t, size_t panel,
                              unsigned n_columns)
{
    const struct gg_feedback_metric *m = t->job->metric;
    memset(t->base, 0, t->n_vectors * (size_t)PANEL_SIZE * sizeof *t->base);
    add_product(t, m->s, m->n, panel, n_columns);
    for (unsigned j = 0; j < n_columns; j += TILE)
        pack_tile(t->inner + j * GG_FEEDBACK_PANEL, m->s, m->n, panel,
                  n_columns, panel + j);
}

void gg_feedback_multiply_inner(const struct gg_feedback_task *t, float *acc,
                                const float *err, size_t stride, unsigned n,
                                unsigned first, unsigned end)
{
    for (unsigned j = first; j < end && n > 0; j += TILE)
        t->job->kern->product(acc + j * W, PANEL_SIZE, err, stride,
                              t->n_vectors, t->inner + j * GG_FEEDBACK_PANEL,
                              n);
}

void gg_feedback_add_inner(struct gg_feedback_task *t, size_t panel,
                           unsigned column, unsigned n)
{
    gg_feedback_multiply_inner(t, t->base, t->err + panel * W,
                               t->job->metric->n * W, column, column,
                               column + n);
}

void gg_feedback_load_sub(struct gg_feedback_task *t, size_t first, unsigned n)
{
    const struct gg_feedback_metric *m = t->job->metric;
    for (unsigned i = 0; i < n; i++) {
        const float *g = m->g + (first + i) * m->n + first;
        for (unsigned j = i + 1; j < n; j++)
            t->sub_g[j * n + i] = g[j];
    }
    t->view.base = t->base;
    t->view.target = t->target;
    t->view.diag = m->d + first;
    t->view.weight = t->job->weight ? t->job->weight + first : NULL;
}
