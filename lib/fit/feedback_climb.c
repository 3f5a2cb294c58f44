/* SPDX-License-Identifier: MIT */
/* feedback_climb.c - search for the scales and minima of sub-blocks
 *
 * The codes of a row's sub-block move to the best of their neighbours, at most
 * MOVES times for each length of the steps. Neighbours differ by one step in
 * the code of the scale, of the minimum (or of the shift), or both. A move
 * leaves only the neighbours that the move before has not tried. Rows that
 * still climb are gathered into vectors, so that rows that have arrived cost
 * nothing.
 */
#include "config.h"
#include "fit/feedback_task.h"

#include <math.h>
#include <string.h>

enum { W = GG_FEEDBACK_LANES, MOVES = 4, TRIES = GG_FEEDBACK_TRIES };

/* Search of one row. */
struct climber {
    int32_t scale, min;         /* the best codes */
    int32_t at_scale, at_min;   /* codes whose neighbours are tried */
    int32_t was_scale, was_min; /* codes before the last move */
    float cost;                 /* cost of the best codes */
    unsigned moves;
    bool is_done;
};

/* Codes to try for a row. */
struct attempt {
    uint16_t row, n; /* n: 0 to TRIES */
    int32_t scale[TRIES], min[TRIES];
    float cost[TRIES];
};

/* Range of codes, and the distance of neighbours. */
struct axis {
    int32_t lo, hi, step; /* step 0: a single code */
};

struct search {
    struct gg_feedback_task *task;
    const struct gg_feedback_place *place;
    struct axis scale, min; /* min: of the shift in a form with shifts */
    unsigned n_mins; /* neighbours along min, with the code itself: 1 to 3 */
    bool has_shift;  /* a sub-block has a shift, searched as a minimum */
    unsigned per_attempt; /* codes in an attempt: TRIES, or 1 if a code takes
                             * long to try */
    struct climber climber[GG_FEEDBACK_ROWS];
    unsigned n_attempts;
    struct attempt attempt[GG_FEEDBACK_ROWS * 9];
};

/* Set up a vector of attempts. Rows that are not those of one of the task's
 * vectors, in order, are gathered. */
static struct gg_feedback_sub
load_attempts(struct search *s, const struct attempt *a, unsigned n)
{
    const struct gg_feedback_task *t = s->task;
    struct gg_feedback_sub sub = gg_feedback_sub_of(t, s->place, a->row / W);
    bool in_place = a->row % W == 0;
    for (unsigned l = 1; l < n && in_place; l++)
        in_place = a[l].row == a->row + l;
    if (in_place)
        return sub;
    float *base = t->lanes, *target = base + GG_FEEDBACK_MAX_SUB * W;
    for (unsigned l = 0; l < W; l++) {
        const unsigned row = a[l < n ? l : 0].row;
        const size_t at = (size_t)(row / W) * GG_FEEDBACK_PANEL_SIZE +
                          s->place->column * W + row % W;
        for (unsigned j = 0; j < sub.len; j++) {
            base[j * W + l] = t->view.base[at + j * W];
            target[j * W + l] = t->view.target[at + j * W];
        }
    }
    sub.base = base;
    sub.target = target;
    return sub;
}

/* Find the costs of all attempts. */
static void run_attempts(struct search *s)
{
    const struct gg_feedback_task *t = s->task;
    const struct gg_feedback_job *job = t->job;
    struct gg_feedback_try try[TRIES];
    float cost[TRIES][W];
    for (unsigned i = 0; i < s->n_attempts; i += W) {
        struct attempt *a = s->attempt + i;
        const unsigned n = GG_MIN((unsigned)W, s->n_attempts - i);
        const struct gg_feedback_sub sub = load_attempts(s, a, n);
        unsigned n_tries = 0;
        for (unsigned l = 0; l < W; l++) {
            const struct attempt *b = &a[l < n ? l : 0];
            n_tries = GG_MAX(n_tries, b->n);
            for (unsigned k = 0; k < TRIES; k++) {
                unsigned c = k < b->n ? k : 0;
                gg_feedback_set_try(job->form, &try[k], l, &t->block[b->row],
                                    b->scale[c], b->min[c]);
            }
        }
        job->kern->try[job->rule->kind](job->rule, &sub, try, n_tries, cost,
                                        t->work);
        for (unsigned l = 0; l < n; l++)
            for (unsigned k = 0; k < TRIES; k++)
                a[l].cost[k] = cost[k][l];
    }
}

/* Code at `by` steps from a code; out of range: the code itself. */
static int32_t step_code(const struct axis *x, int32_t code, int32_t by)
{
    const int32_t to = code + by * x->step;
    return to < x->lo || to > x->hi ? code : to;
}

/* Add codes to the last attempt if that is the row's and has room, or to a new
 * one. */
static void add_codes(struct search *s, unsigned row, int32_t scale,
                      int32_t min)
{
    struct attempt *a = s->attempt + s->n_attempts;
    if (!s->n_attempts || a[-1].row != row || a[-1].n == s->per_attempt) {
        s->n_attempts++;
        a->row = (uint16_t)row;
        a->n = 0;
        a++;
    }
    a[-1].scale[a[-1].n] = scale;
    a[-1].min[a[-1].n++] = min;
}

/* Neighbours of a row's codes: i < 3, j < n_mins. */
static int32_t near_scale(const struct search *s, const struct climber *c,
                          unsigned i)
{
    return step_code(&s->scale, c->at_scale, (int32_t)i - 1);
}

static int32_t near_min(const struct search *s, const struct climber *c,
                        unsigned j)
{
    if (s->n_mins == 1)
        return c->at_min;
    return s->has_shift ? c->at_min ^ (int32_t)j
                        : step_code(&s->min, c->at_min, (int32_t)j - 1);
}

/* Attempts of all neighbours of all rows. The rows of an attempt follow each
 * other, so that vectors need not be gathered. */
static void add_first(struct search *s, unsigned n_rows)
{
    const unsigned n = 3 * s->n_mins;
    for (unsigned k = 0; k < n; k += s->per_attempt)
        for (unsigned r = 0; r < n_rows; r++) {
            const struct climber *c = &s->climber[r];
            struct attempt *a = &s->attempt[s->n_attempts++];
            a->row = (uint16_t)r;
            a->n = (uint16_t)s->per_attempt;
            for (unsigned i = 0; i < a->n; i++) {
                a->scale[i] = near_scale(s, c, (k + i) / s->n_mins);
                a->min[i] = near_min(s, c, (k + i) % s->n_mins);
            }
        }
}

static bool is_near(const struct axis *x, int32_t code, int32_t other)
{
    return code >= other - x->step && code <= other + x->step;
}

/* Attempts of the neighbours that a move has brought near. */
static void add_neighbours(struct search *s, unsigned row)
{
    const struct climber *c = &s->climber[row];
    for (unsigned i = 0; i < 3; i++)
        for (unsigned j = 0; j < s->n_mins; j++) {
            int32_t scale = near_scale(s, c, i), min = near_min(s, c, j);
            if (!is_near(&s->scale, scale, c->was_scale) ||
                !is_near(&s->min, min, c->was_min))
                add_codes(s, row, scale, min);
        }
}

/* Attempts of the codes in the direction of the first move, one for each move
 * left. For forms without minima. */
static void add_line(struct search *s, unsigned row)
{
    const struct climber *c = &s->climber[row];
    const int32_t by = c->at_scale > c->was_scale ? 1 : -1;
    for (int32_t k = 1; k < MOVES; k++)
        add_codes(s, row, step_code(&s->scale, c->at_scale, k * by),
                  c->at_min);
}

/* Take the better codes of an attempt. */
static void take_codes(struct climber *c, const struct attempt *a)
{
    for (unsigned k = 0; k < a->n; k++)
        if (a->cost[k] < c->cost) {
            c->cost = a->cost[k];
            c->scale = a->scale[k];
            c->min = a->min[k];
        }
}

/* Walk along the codes of add_line() until the cost rises. */
static void take_line(struct climber *c, const struct attempt *a)
{
    for (unsigned k = 0; k < a->n && a->cost[k] < c->cost; k++) {
        c->cost = a->cost[k];
        c->scale = a->scale[k];
    }
    c->is_done = true;
}

/* Costs of the codes where rows begin. */
static void take_own(struct climber *c, const struct attempt *a)
{
    for (unsigned k = 0; k < a->n; k++)
        if (a->scale[k] == c->at_scale && a->min[k] == c->at_min)
            c->cost = a->cost[k];
}

/* Move a row to the best codes, if they are others. */
static void move_row(struct climber *c)
{
    if (c->scale == c->at_scale && c->min == c->at_min) {
        c->is_done = true;
        return;
    }
    c->was_scale = c->at_scale;
    c->was_min = c->at_min;
    c->at_scale = c->scale;
    c->at_min = c->min;
    c->is_done = ++c->moves == MOVES;
}

static void init_search(struct search *s, struct gg_feedback_task *t,
                        const struct gg_feedback_place *p, int32_t times)
{
    const struct gg_form *f = t->job->form;
    s->task = t;
    s->place = p;
    s->scale =
        (struct axis){ f->scale_lo, f->scale_hi, times * f->scale_step };
    s->has_shift = f->shift_len == f->sub_len;
    s->n_mins = f->has_min ? 3 : s->has_shift ? 2 : 1;
    s->min = f->has_min
                 ? (struct axis){ f->min_lo, f->min_hi, times * f->min_step }
                 : (struct axis){ 0, 1, 1 };
    s->per_attempt = f->n_levels ? TRIES : 1;
    s->n_attempts = 0;
    for (unsigned r = 0; r < t->n_vectors * W; r++) {
        const struct gg_form_block *b = &t->block[r];
        struct climber *c = &s->climber[r];
        *c = (struct climber){ .cost = INFINITY };
        c->scale = c->at_scale = b->scale[p->index];
        c->min = c->at_min =
            s->has_shift ? b->shift[p->index] : b->min[p->index];
    }
}

/* Climb on from the first moves: to the best neighbours, or along a line. */
static void climb_on(struct search *s, unsigned n_rows)
{
    const bool on_line = s->n_mins == 1 && s->per_attempt == TRIES;
    do {
        s->n_attempts = 0;
        for (unsigned r = 0; r < n_rows; r++)
            if (!s->climber[r].is_done)
                on_line ? add_line(s, r) : add_neighbours(s, r);
        run_attempts(s);
        for (unsigned i = 0; i < s->n_attempts; i++) {
            const struct attempt *a = &s->attempt[i];
            on_line ? take_line(&s->climber[a->row], a)
                    : take_codes(&s->climber[a->row], a);
        }
        for (unsigned r = 0; r < n_rows; r++)
            if (!s->climber[r].is_done)
                move_row(&s->climber[r]);
    } while (s->n_attempts);
}

/* Climb by steps that are `times` the form's. */
static void climb_by(struct gg_feedback_task *t,
                     const struct gg_feedback_place *p, int32_t times)
{
    const unsigned n_rows = t->n_vectors * W;
    struct search s;
    init_search(&s, t, p, times);
    add_first(&s, n_rows);
    run_attempts(&s);
    for (unsigned i = 0; i < s.n_attempts; i++)
        take_own(&s.climber[s.attempt[i].row], &s.attempt[i]);
    for (unsigned i = 0; i < s.n_attempts; i++)
        take_codes(&s.climber[s.attempt[i].row], &s.attempt[i]);
    for (unsigned r = 0; r < n_rows; r++)
        move_row(&s.climber[r]);
    climb_on(&s, n_rows);
    for (unsigned r = 0; r < n_rows; r++) {
        struct gg_form_block *b = &t->block[r];
        b->scale[p->index] = s.climber[r].scale;
        if (s.has_shift)
            b->shift[p->index] = (uint8_t)s.climber[r].min;
        else
            b->min[p->index] = s.climber[r].min;
    }
}

void gg_feedback_climb(struct gg_feedback_task *t,
                       const struct gg_feedback_place *p)
{
    const struct gg_form *f = t->job->form;
    for (int32_t n = f->scale_first / f->scale_step; n > 0; n /= 8)
        climb_by(t, p, n);
}
