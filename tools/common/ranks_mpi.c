/* SPDX-License-Identifier: MIT */
/* ranks_mpi.c - sharing the chunks of a text between the ranks of an MPI job
 *
 * Rank 0 has a window of two counters that the other ranks change by one-sided
 * operations: the next chunk to hand out, and the number of ranks that want to
 * print an error. Records are sent to rank 0 as messages; it stores them in
 * its part, in whatever order they arrive.
 *
 * Sending and waiting do not block, and a rank with nothing to do sleeps
 * between two polls, since ranks may share processors and a blocking call of
 * MPI takes a whole one. Only the main thread calls MPI. Records are sent as
 * bytes: all ranks run on machines of one kind.
 */
#include "config.h"
#include "tools/common/ranks.h"
#include "tools/common/msg.h"
#include "tools/common/progress.h"
#include "tools/common/style.h"
#include "base/os/os.h"
#include "base/os/os_program.h"

#include <inttypes.h>
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNTER, SPEAKERS, WORDS }; /* words of the window */
/* tags of messages; TAG_RECORD and TAG_EXTRA_BYTES carry the bytes of the head
 * before them */
enum { TAG_SETTINGS = 1, TAG_HEAD, TAG_RECORD, TAG_EXTRA, TAG_EXTRA_BYTES };
enum { PIECE = 1 << 23 }; /* most bytes in a message */
static const double poll_seconds = 1e-3;
static const long nap_nanoseconds = 1000000;
enum { GRACE_SECONDS = 10 }; /* time for the rank that prints to end the job */

/* Message before the bytes of a record, or of extra results, which only have a
 * size. */
struct head {
    int64_t chunk, n_rows, size;
};
enum { HEAD_WORDS = sizeof(struct head) / sizeof(int64_t) };

static struct {
    bool begun, parsed;  /* MPI was started; the options were parsed */
    bool failed, speaks; /* this rank failed; its error is the first of all */
    bool sharing;        /* ranks_share() is running */
    void *extra;         /* results that are being sent beside records */
    int rank, n_ranks;
    int about; /* rank that an error is about */
    char name[32];
    MPI_Win window;
    int64_t *words; /* the window: WORDS words on rank 0 */
    const struct ranks_work *work;
    /* heads being sent, by chunk; the last is that of the extra results */
    struct head *heads;
    MPI_Request *sent;
    size_t n_sent, room_sent;
    double polled;
} m;

static void sleep_briefly(void)
{
    gg_os_sleep(nap_nanoseconds);
}

/* Add n to a word of the window. Returns its value before. */
static int64_t fetch_and_add(int word, int64_t n)
{
    int64_t before = 0;
    MPI_Fetch_and_op(&n, &before, MPI_INT64_T, 0, word, MPI_SUM, m.window);
    MPI_Win_flush(0, m.window);
    return before;
}

/* ---- beginning and end ---- */

/* A msg_gate_fn: rank 0 prints notes and warnings; the first rank that fails
 * prints its error. */
static const char *gate_message(bool is_error)
{
    if (!is_error)
        return m.rank == 0 ? "" : NULL;
    if (!m.failed) {
        m.failed = true;
        m.speaks = fetch_and_add(SPEAKERS, 1) == 0;
    }
    if (m.n_ranks > 1)
        snprintf(m.name, sizeof m.name, "rank %d: ", m.about);
    return m.speaks ? m.name : NULL;
}

/* At exit: a rank that failed ends the job. It first gives the rank that
 * prints an error time to do so. */
static void end_job(void)
{
    if (m.failed && m.n_ranks > 1) {
        if (!m.speaks)
            gg_os_sleep(GRACE_SECONDS * UINT64_C(1000000000));
        MPI_Abort(MPI_COMM_WORLD, m.parsed ? MSG_FAILED : MSG_USAGE);
    }
    MPI_Win_unlock_all(m.window);
    MPI_Win_free(&m.window);
    MPI_Finalize();
}

static void begin_job(int *argc, char ***argv)
{
    int level;
    MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &m.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &m.n_ranks);
    const MPI_Aint size =
        m.rank == 0 ? (MPI_Aint)(WORDS * sizeof *m.words) : 0;
    MPI_Win_allocate(size, sizeof *m.words, MPI_INFO_NULL, MPI_COMM_WORLD,
                     &m.words, &m.window);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, m.window);
    if (m.rank == 0)
        memset(m.words, 0, (size_t)size);
    MPI_Win_sync(m.window);
    MPI_Barrier(MPI_COMM_WORLD);
    m.begun = true;
    m.about = m.rank;
    msg_set_gate(gate_message);
    style_no_terminal();
    if (atexit(end_job) != 0 || (m.rank && gg_os_stream_silence(stdout) != 0))
        MPI_Abort(MPI_COMM_WORLD, MSG_FAILED);
}

void ranks_begin(int *argc, char ***argv)
{
    for (int i = 1; i < *argc && !m.begun; i++)
        if (!strcmp((*argv)[i], "--mpi"))
            begin_job(argc, argv);
}

void ranks_require(bool mpi)
{
    if (mpi && !m.begun) /* --mpi was abbreviated */
        begin_job(NULL, NULL);
    m.parsed = true;
}

bool ranks_is_worker(void)
{
    return m.rank > 0;
}

size_t ranks_count(void)
{
    return (size_t)m.n_ranks;
}

size_t ranks_own(void)
{
    return (size_t)m.rank;
}

/* ---- sending ---- */

static MPI_Request *next_request(void)
{
    m.sent = msg_grow(m.sent, &m.room_sent, m.n_sent + 1, sizeof(MPI_Request));
    return &m.sent[m.n_sent++];
}

/* Send a head and its bytes. Both must stay in place until they arrive. */
static void send_bytes(struct head *h, int tag, const void *data)
{
    const char *p = data;
    MPI_Isend(h, HEAD_WORDS, MPI_INT64_T, 0, tag, MPI_COMM_WORLD,
              next_request());
    for (int64_t at = 0, k; at < h->size; at += k) {
        k = h->size - at < PIECE ? h->size - at : PIECE;
        MPI_Isend(p + at, (int)k, MPI_BYTE, 0, tag + 1, MPI_COMM_WORLD,
                  next_request());
    }
}

static size_t record_size(const struct gguf_part *p, size_t n_rows)
{
    return (gguf_part_n_chunk_values(p) + n_rows * gguf_part_n_row_values(p)) *
           sizeof(double);
}

static void send_chunk(const struct gguf_part *p, size_t chunk)
{
    size_t n = 0;
    (void)gguf_part_row_values(p, chunk, &n);
    struct head *h = &m.heads[chunk - m.work->first];
    *h = (struct head){ (int64_t)chunk, (int64_t)n,
                        (int64_t)record_size(p, n) };
    send_bytes(h, TAG_HEAD, gguf_part_chunk_values(p, chunk));
}

/* Send the settings that determine the results, as names and values that each
 * end with a NUL. */
static void send_settings(const struct gguf_part *p)
{
    char *all = NULL;
    size_t n = 0, room = 0;
    const char *value, *name;
    for (size_t i = 0; (name = gguf_part_setting(p, i, &value)); i++)
        for (int k = 0; k < 2; k++) {
            const char *s = k ? value : name;
            const size_t size = strlen(s) + 1;
            all = msg_grow(all, &room, n + size, 1);
            memcpy(all + n, s, size);
            n += size;
        }
    if (n > INT_MAX)
        msg_error(NULL, "%zu bytes of settings are too many", n);
    else
        MPI_Send(all, (int)n, MPI_CHAR, 0, TAG_SETTINGS, MPI_COMM_WORLD);
    free(all);
}

/* ---- receiving ---- */

static bool fail_rank(int from, const struct gguf_error *err)
{
    m.about = from;
    return msg_fail(NULL, err);
}

/* Does rank from have the settings of this rank? */
static bool check_settings(const struct gguf_part *own, int from,
                           const char *all, size_t size)
{
    struct gguf_part *other;
    struct gguf_error err;
    enum gguf_status st = gguf_part_create(
        &other, gguf_part_n_chunks(own), gguf_part_n_chunk_values(own),
        gguf_part_n_row_values(own), NULL, &err);
    for (size_t at = 0; st == GGUF_OK && at < size;) {
        const char *name = all + at, *value = name + strlen(name) + 1;
        at = (size_t)(value - all) + strlen(value) + 1;
        st = gguf_part_set_setting(other, name, value, &err);
    }
    if (st == GGUF_OK)
        st = gguf_part_check_settings(own, other, &err);
    gguf_part_destroy(other);
    return st == GGUF_OK || fail_rank(from, &err);
}

static bool receive_settings(struct gguf_part *own, const MPI_Status *s)
{
    int n;
    MPI_Get_count(s, MPI_CHAR, &n);
    char *all = msg_must(malloc((size_t)n + 1));
    MPI_Recv(all, n, MPI_CHAR, s->MPI_SOURCE, s->MPI_TAG, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
    all[n] = '\0';
    const bool good = check_settings(own, s->MPI_SOURCE, all, (size_t)n);
    free(all);
    return good;
}

/* Receive the bytes after a head. Free the result. */
static void *receive_bytes(const struct head *h, const MPI_Status *s)
{
    char *p = msg_must(malloc((size_t)h->size + 1));
    for (int64_t at = 0, k; at < h->size; at += k) {
        k = h->size - at < PIECE ? h->size - at : PIECE;
        MPI_Recv(p + at, (int)k, MPI_BYTE, s->MPI_SOURCE, s->MPI_TAG + 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    return p;
}

static void receive_head(struct head *h, const MPI_Status *s)
{
    MPI_Recv(h, HEAD_WORDS, MPI_INT64_T, s->MPI_SOURCE, s->MPI_TAG,
             MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static bool receive_chunk(struct gguf_part *own, const MPI_Status *s)
{
    struct gguf_error err;
    struct head h;
    receive_head(&h, s);
    double *v = receive_bytes(&h, s);
    enum gguf_status st = GGUF_OK;
    if ((size_t)h.size == record_size(own, (size_t)h.n_rows)) {
        st = gguf_part_add_chunk(own, (size_t)h.chunk, v,
                                 v + gguf_part_n_chunk_values(own),
                                 (size_t)h.n_rows, &err);
        m.work->done[s->MPI_SOURCE]++;
    } /* otherwise the rank was refused by its settings, which come first */
    free(v);
    return st == GGUF_OK || fail_rank(s->MPI_SOURCE, &err);
}

/* Receive all messages that have arrived. Settings are received before chunks,
 * and both only when the own part exists; it does early, since rank 0 has the
 * first chunk. */
static bool receive_all(void)
{
    struct gguf_part *own = m.work->part(m.work->user);
    MPI_Status s;
    int flag = 1;
    /* even without a message this lets MPI serve the window */
    MPI_Iprobe(MPI_ANY_SOURCE, TAG_SETTINGS, MPI_COMM_WORLD, &flag, &s);
    for (; own && flag && !m.failed;
         MPI_Iprobe(MPI_ANY_SOURCE, TAG_SETTINGS, MPI_COMM_WORLD, &flag, &s))
        m.failed |= !receive_settings(own, &s);
    flag = 1;
    while (own && flag && !m.failed) {
        MPI_Iprobe(MPI_ANY_SOURCE, TAG_HEAD, MPI_COMM_WORLD, &flag, &s);
        if (flag)
            m.failed |= !receive_chunk(own, &s);
    }
    return !m.failed;
}

/* Receive the extra results of one rank if they have arrived, and count it in
 * *n. */
static bool receive_extra(size_t *n)
{
    struct head h;
    MPI_Status s;
    int flag;
    MPI_Iprobe(MPI_ANY_SOURCE, TAG_EXTRA, MPI_COMM_WORLD, &flag, &s);
    if (!flag)
        return true;
    receive_head(&h, &s);
    void *data = receive_bytes(&h, &s);
    m.about = s.MPI_SOURCE;
    const bool good =
        !h.size || m.work->put_extra(m.work->user, data, (size_t)h.size);
    m.about = m.rank;
    free(data);
    ++*n;
    return good;
}

/* Let MPI progress with messages that are being sent. Returns true if all have
 * been sent. */
static bool poll_sends(void)
{
    int done = 1;
    if (m.n_sent)
        MPI_Testall((int)m.n_sent, m.sent, &done, MPI_STATUSES_IGNORE);
    if (done)
        m.n_sent = 0;
    return done;
}

bool ranks_poll(void)
{
    int is_main;
    if (!m.sharing)
        return !m.failed;
    MPI_Is_thread_main(&is_main);
    const double now = progress_clock();
    if (!is_main || now - m.polled < poll_seconds)
        return true;
    m.polled = now;
    if (m.rank)
        (void)poll_sends();
    else
        (void)receive_all();
    return !m.failed;
}

/* ---- the work ---- */

/* Wait for a collective operation. Rank 0 serves the other ranks meanwhile. */
static void wait_for(MPI_Request *request)
{
    int done = 0;
    for (;;) {
        MPI_Test(request, &done, MPI_STATUS_IGNORE);
        if (done)
            return;
        progress_raise();
        sleep_briefly();
    }
}

void ranks_exchange(void *data, const uint64_t *off)
{
    char *p = data;
    m.n_sent = 0;
    for (int r = 0; r < m.n_ranks; r++)
        for (uint64_t at = off[r], n; at < off[r + 1]; at += n) {
            n = off[r + 1] - at;
            n = n < PIECE ? n : PIECE;
            MPI_Ibcast(p + at, (int)n, MPI_BYTE, r, MPI_COMM_WORLD,
                       next_request());
        }
    while (!poll_sends()) {
        progress_raise();
        sleep_briefly();
    }
}

/* Check that all ranks have the same chunks. It also makes sure that nobody
 * begins before rank 0 can hand out chunks. */
static bool agree_on_work(void)
{
    const int64_t n = (int64_t)m.work->n, first = (int64_t)m.work->first;
    const int64_t own[4] = { n, -n, first, -first };
    int64_t most[4];
    MPI_Request request;
    MPI_Iallreduce(own, most, 4, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD,
                   &request);
    wait_for(&request);
    if (most[0] == -most[1] && most[2] == -most[3])
        return true;
    return msg_error(NULL,
                     "the texts of the ranks differ: they have %" PRId64
                     " to %" PRId64 " "
                     "chunks",
                     -most[1], most[0]);
}

static bool evaluate_chunks(size_t first, size_t n)
{
    const struct ranks_work *w = m.work;
    if (!w->evaluate(w->user, w->first + first, n) || m.failed)
        return false;
    w->done[m.rank] += n;
    if (!m.rank)
        return receive_all();
    if (w->done[m.rank] == n) /* the first chunks of this rank */
        send_settings(w->part(w->user));
    for (size_t i = 0; i < n; i++)
        send_chunk(w->part(w->user), w->first + first + i);
    return !m.failed;
}

/* Number of chunks that are taken at a time: those that go through the model
 * together, or fewer near the end, so that ranks finish at about the same
 * time. */
static size_t chunks_at_once(void)
{
    const size_t turns = 4;
    const size_t n = m.work->n / (turns * (size_t)m.n_ranks);
    return n < 1 ? 1 : n < m.work->together ? n : m.work->together;
}

/* Take chunks and evaluate them until none are left. Rank 0 has the first
 * chunks: its part must exist before it can receive records. */
static bool evaluate_share(void)
{
    const struct ranks_work *w = m.work;
    const size_t step = chunks_at_once();
    size_t at = 0;
    bool good = true;
    if (m.rank)
        at = (size_t)fetch_and_add(COUNTER, (int64_t)step);
    while (good && at < w->n) {
        const size_t left = w->n - at;
        good = evaluate_chunks(at, step < left ? step : left);
        if (good)
            at = (size_t)fetch_and_add(COUNTER, (int64_t)step);
    }
    return good;
}

/* Is there work left? Also receives messages that have arrived. */
static bool is_busy(size_t *n_extras)
{
    const struct ranks_work *w = m.work;
    if (m.rank)
        return !poll_sends();
    if (!receive_all())
        return false;
    if (gguf_part_n_done(w->part(w->user)) < w->n)
        return true;
    if (w->put_extra && *n_extras + 1 < (size_t)m.n_ranks)
        m.failed |= !receive_extra(n_extras);
    return !m.failed && w->put_extra && *n_extras + 1 < (size_t)m.n_ranks;
}

static bool send_extra(void)
{
    const struct ranks_work *w = m.work;
    struct head *h = &m.heads[w->n];
    size_t size = 0;
    if (!m.rank || !w->get_extra)
        return true;
    if (!w->get_extra(w->user, &m.extra, &size))
        return false;
    *h = (struct head){ .size = (int64_t)size };
    send_bytes(h, TAG_EXTRA, m.extra);
    return true;
}

/* Wait until all records of all ranks have arrived at rank 0. */
static bool finish_shares(void)
{
    MPI_Request request;
    size_t n_extras = 0;
    if (!send_extra())
        return false;
    while (is_busy(&n_extras)) {
        if (m.work->waiting)
            m.work->waiting(m.work->user);
        progress_raise();
        sleep_briefly();
    }
    if (m.failed ||
        /* settings of the rank that was last */
        (!m.rank && !receive_all()))
        return false;
    m.sharing = false;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    wait_for(&request);
    return true;
}

bool ranks_share(const struct ranks_work *w)
{
    m.work = w;
    m.heads = msg_must(calloc(w->n + 1, sizeof *m.heads));
    if (!m.rank) /* rank 0 takes the first chunks without asking */
        (void)fetch_and_add(COUNTER, (int64_t)chunks_at_once());
    m.sharing = true;
    const bool good = agree_on_work() && evaluate_share() && finish_shares();
    m.sharing = false;
    if (good) { /* no message refers to the memory any more */
        free(m.heads);
        free(m.sent);
        free(m.extra);
    }
    return good;
}
