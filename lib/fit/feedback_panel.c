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

/* Copy coefficients of rows i .. i + n_i - 1 and of a tile's columns. */
static void pack_tile(float *tile, const struct gg_feedback_metric *m,
                      size_t i, size_t n_i, size_t column)
{
    const float *g = m->g + i * m->n + column;
    for (size_t k = 0; k < n_i; k++)
        memcpy(tile + k * TILE, g + k * m->n, TILE * sizeof *tile);
}

void gg_feedback_open_panel(struct gg_feedback_task *t, size_t panel,
                            unsigned n_columns)
{
    const struct gg_feedback_metric *m = t->job->metric;
    for (size_t i = 0; i < panel; i += GG_FEEDBACK_CHUNK) {
        const size_t n = GG_MIN((size_t)GG_FEEDBACK_CHUNK, panel - i);
        for (unsigned j = 0; j < n_columns; j += TILE)
            pack_tile(t->chunk + j * n, m, i, n, panel + j);
        for (unsigned v = 0; v < t->n_vectors; v += CACHED)
            for (unsigned j = 0; j < n_columns; j += TILE)
                t->job->kern->product(
                    t->base + v * PANEL_SIZE + j * W, PANEL_SIZE,
                    t->err + (v * m->n + i) * W, m->n * W,
                    GG_MIN((unsigned)CACHED, t->n_vectors - v),
                    t->chunk + j * n, n);
    }
    for (unsigned j = TILE; j < n_columns; j += TILE)
        pack_tile(t->inner + j * GG_FEEDBACK_PANEL, m, panel, j, panel + j);
}

void gg_feedback_add_inner(struct gg_feedback_task *t, size_t panel,
                           unsigned column, unsigned n)
{
    const size_t stride = t->job->metric->n * W;
    if (column == 0)
        return;
    for (unsigned j = column; j < column + n; j += TILE)
        t->job->kern->product(t->base + j * W, PANEL_SIZE, t->err + panel * W,
                              stride, t->n_vectors,
                              t->inner + j * GG_FEEDBACK_PANEL, column);
}

void gg_feedback_load_sub(struct gg_feedback_task *t, size_t first, unsigned n)
{
    const struct gg_feedback_metric *m = t->job->metric;
    for (unsigned i = 0; i < n; i++) {
        const float *g = m->g + (first + i) * m->n + first;
        for (unsigned j = i + 1; j < n; j++)
            t->sub_g[j * n + i] = g[j];
    }
}
