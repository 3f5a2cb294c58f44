/* SPDX-License-Identifier: MIT */
/* check-write.c - written files are read back, and written again with the same
 * bytes
 *
 * Random metadata of every type, with nested arrays, and random tensors: in
 * pieces, by copy, and by write_at from several threads.
 */
#include "config.h"
#include "base/bytes.h"
#include "gguf/writer.h"
#include "tests/failalloc.h"
#include "tests/slurp.h"
#include "tests/scratch.h"
#include "tests/tap.h"

#include <errno.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "check-write-XXXXXX";

static const char *in_dir(const char *name)
{
    return scratch_path(dir, name);
}

static int n_entries(void)
{
    char cmd[300];
    snprintf(cmd, sizeof cmd, "ls -A %s | wc -l", dir);
    FILE *p = popen(cmd, "r");
    int n = -1;
    if (p && fscanf(p, "%d", &n) != 1)
        n = -1;
    if (p)
        pclose(p);
    return n;
}

/* ------------------------------------------------------ random things --- */

struct bytes {
    uint8_t b[8192];
    size_t n;
};

static void put_bytes(struct bytes *o, uint64_t v, size_t size)
{
    uint8_t b[8];
    gg_bytes_store64le(b, v);
    if (o->n + size <= sizeof o->b) {
        memcpy(o->b + o->n, b, size);
        o->n += size;
    }
}

/* Encode a random value; arrays are nested to at most depth. */
static void random_value(struct bytes *o, uint32_t type, unsigned depth)
{
    size_t size = gguf_val_type_size(type);
    if (type == GGUF_VAL_BOOL) {
        put_bytes(o, rnd_below(2), 1);
    } else if (size) {
        put_bytes(o, rnd64(), size);
    } else if (type == GGUF_VAL_STR) {
        uint64_t n = rnd_below(12);
        put_bytes(o, n, 8);
        while (n--)
            put_bytes(o, rnd64(), 1);
    } else {
        uint32_t elem = (uint32_t)rnd_below(GGUF_N_VAL_TYPES);
        if (elem == GGUF_VAL_ARR && depth == 0)
            elem = GGUF_VAL_I16;
        uint64_t n = rnd_below(4);
        put_bytes(o, elem, 4);
        put_bytes(o, n, 8);
        while (n--)
            random_value(o, elem, depth - 1);
    }
}

static struct gguf_meta *random_meta(void)
{
    struct gguf_meta *m;
    struct gguf_error err;
    if (gguf_meta_create(&m, NULL, &err) != GGUF_OK)
        return NULL;
    for (uint64_t i = 0, n = rnd_below(20); i < n; i++) {
        char key[40];
        struct bytes o = { .n = 0 };
        uint32_t type = (uint32_t)rnd_below(GGUF_N_VAL_TYPES);
        snprintf(key, sizeof key, "some.key_%d", (int)rnd_below(1000));
        random_value(&o, type, 3);
        if (gguf_meta_set_encoded(m, key, type, o.b, o.n, &err) != GGUF_OK)
            printf("# %s\n", err.message);
    }
    if (rnd_below(2) && gguf_meta_set_u32(m, "general.alignment",
                                          8u << rnd_below(6), &err) != GGUF_OK)
        printf("# %s\n", err.message);
    return m;
}

/* Byte k of tensor i. */
static uint8_t byte_at(size_t i, uint64_t k)
{
    return (uint8_t)((i * 31 + k) * 2654435761u >> 13);
}

static int plan_tensors(struct gguf_writer *w, size_t n)
{
    static const uint32_t types[] = { GGUF_DTYPE_F32,  GGUF_DTYPE_F16,
                                      GGUF_DTYPE_Q8_0, GGUF_DTYPE_Q4_K,
                                      GGUF_DTYPE_I8,   GGUF_DTYPE_F64 };
    struct gguf_error err;
    for (size_t i = 0; i < n; i++) {
        char name[40];
        int len = snprintf(name, sizeof name, "blk.%zu.weight", i);
        uint32_t type = types[rnd_below(6)];
        unsigned n_dims = (unsigned)rnd_below(5);
        int64_t ne[4];
        for (unsigned d = 0; d < n_dims; d++)
            ne[d] = 1 + (int64_t)rnd_below(5);
        if (n_dims == 0)
            type = GGUF_DTYPE_F32;
        else
            ne[0] *= gguf_dtype_find(type)->block_len;
        if (gguf_writer_add_tensor(w, (struct gguf_str){ name, (size_t)len },
                                   type, n_dims, ne, &err) != GGUF_OK) {
            printf("# %s\n", err.message);
            return 0;
        }
    }
    return 1;
}

/* Write the data of all tensors: in pieces of random size, in reverse order by
 * write_at, or alternately. */
static int write_data(struct gguf_writer *w, unsigned how)
{
    struct gguf_error err;
    /* the largest tensor of plan_tensors() */
    static uint8_t buf[5 * 5 * 5 * 5 * 144];
    for (size_t k = 0, n = gguf_writer_n_tensors(w); k < n; k++) {
        size_t i = how == 1 ? n - 1 - k : k;
        const struct gguf_tensor_info *t = gguf_writer_tensor(w, i);
        for (uint64_t b = 0; b < t->size; b++)
            buf[b] = byte_at(i, b);
        if (how == 1 || (how == 2 && i % 2 == 1)) {
            uint64_t half = t->size / 2;
            if (gguf_writer_write_at(w, i, half, buf + half, t->size - half,
                                     &err) != GGUF_OK ||
                gguf_writer_write_at(w, i, 0, buf, half, &err) != GGUF_OK)
                return 0;
            continue;
        }
        if (gguf_writer_begin_tensor(w, i, &err) != GGUF_OK)
            return 0;
        for (uint64_t off = 0, step; off < t->size; off += step) {
            step = 1 + rnd_below(t->size - off);
            if (gguf_writer_write(w, buf + off, step, &err) != GGUF_OK)
                return 0;
        }
    }
    return 1;
}

static int equal_kv(const struct gguf_kv *a, const struct gguf_kv *b)
{
    return a->type == b->type && a->elem_type == b->elem_type &&
           a->n == b->n && a->size == b->size &&
           !memcmp(a->data, b->data, a->size) && a->key.size == b->key.size &&
           !memcmp(a->key.data, b->key.data, a->key.size);
}

static int equal_file(const struct gguf_file *f, const struct gguf_meta *m,
                      const struct gguf_writer *w)
{
    if (gguf_file_n_kv(f) != gguf_meta_n_kv(m) ||
        gguf_file_n_tensors(f) != gguf_writer_n_tensors(w) ||
        gguf_file_size(f) != gguf_writer_file_size(w) ||
        gguf_file_data_off(f) != gguf_writer_data_off(w))
        return 0;
    for (size_t i = 0; i < gguf_file_n_kv(f); i++)
        if (!equal_kv(gguf_file_kv(f, i), gguf_meta_kv(m, i)))
            return 0;
    for (size_t i = 0; i < gguf_file_n_tensors(f); i++) {
        const struct gguf_tensor_info *a = gguf_file_tensor(f, i);
        const struct gguf_tensor_info *b = gguf_writer_tensor(w, i);
        const uint8_t *d = gguf_file_tensor_data(f, i);
        if (a->size != b->size || a->off != b->off || a->dtype != b->dtype ||
            a->n_dims != b->n_dims || memcmp(a->ne, b->ne, sizeof a->ne))
            return 0;
        for (uint64_t k = 0; k < a->size; k++)
            if (d[k] != byte_at(i, k))
                return 0;
    }
    return 1;
}

/* Write f once more, through copies. */
static int rewrite_file(const struct gguf_file *f, const char *path)
{
    struct gguf_error err;
    struct gguf_meta *m = NULL;
    struct gguf_writer *w = NULL;
    struct gguf_writer_params p = GGUF_INIT(struct gguf_writer_params);
    struct gguf_output_params o = GGUF_INIT(struct gguf_output_params);
    p.version = gguf_file_version(f);
    o.no_sync = true;
    int good = gguf_meta_create(&m, NULL, &err) == GGUF_OK &&
               gguf_meta_copy_file(m, f, &err) == GGUF_OK &&
               gguf_writer_create(&w, m, &p, &err) == GGUF_OK;
    for (size_t i = 0; good && i < gguf_file_n_tensors(f); i++)
        good =
            gguf_writer_add_like(w, gguf_file_tensor(f, i), &err) == GGUF_OK;
    good = good && gguf_writer_begin_file(w, path, &o, &err) == GGUF_OK;
    for (size_t i = 0; good && i < gguf_file_n_tensors(f); i++) {
        uint64_t size = gguf_file_tensor(f, i)->size, half = size / 3;
        good = gguf_writer_begin_tensor(w, i, &err) == GGUF_OK &&
               gguf_writer_copy(w, f, i, 0, half, &err) == GGUF_OK &&
               gguf_writer_copy(w, f, i, half, size - half, &err) == GGUF_OK;
    }
    good = good && gguf_writer_commit(w, &err) == GGUF_OK;
    if (!good)
        printf("# %s\n", err.message);
    gguf_writer_destroy(w);
    gguf_meta_destroy(m);
    return good;
}

static void check_round_trip(unsigned round)
{
    struct gguf_error err;
    struct gguf_writer *w = NULL;
    struct gguf_file *f = NULL;
    struct gguf_writer_params p = GGUF_INIT(struct gguf_writer_params);
    struct gguf_output_params o = GGUF_INIT(struct gguf_output_params);
    const char *a = in_dir("a.gguf"), *b = in_dir("b.gguf");
    struct gguf_meta *m = random_meta();
    p.version = round % 5 == 0 ? 2 : 3;
    o.no_sync = o.force = true;
    int good = m && gguf_writer_create(&w, m, &p, &err) == GGUF_OK &&
               plan_tensors(w, (size_t)rnd_below(9)) &&
               gguf_writer_begin_file(w, a, &o, &err) == GGUF_OK &&
               write_data(w, round % 3) &&
               gguf_writer_commit(w, &err) == GGUF_OK;
    if (!good)
        printf("# %s\n", err.message);
    good = good && gguf_file_open(&f, a, NULL, &err) == GGUF_OK;
    int equal = good && equal_file(f, m, w);
    unlink(b);
    int again = equal && rewrite_file(f, b) && same_files(a, b);
    if (!good || !equal || !again)
        ok(0, "round %u: written %d, equal %d, again %d", round, good, equal,
           again);
    gguf_file_close(f);
    gguf_writer_destroy(w);
    gguf_meta_destroy(m);
}

/* ------------------------------------------------------------ refusals --- */

static struct gguf_writer *small_writer(void)
{
    static const int64_t ne[] = { 4 };
    struct gguf_writer *w = NULL;
    struct gguf_error err;
    if (gguf_writer_create(&w, NULL, NULL, &err) != GGUF_OK ||
        gguf_writer_add_tensor(w, (struct gguf_str){ "t", 1 }, 0, 1, ne,
                               &err) != GGUF_OK)
        printf("# %s\n", err.message);
    return w;
}

static void check_plan(void)
{
    static const int64_t good[] = { 32, 2 }, zero[] = { 0 }, odd[] = { 33 },
                         huge[] = { INT64_MAX, 2 };
    struct gguf_error err;
    struct gguf_str n = { "x", 1 };
    struct gguf_writer *w = small_writer();
    ok(gguf_writer_add_tensor(w, (struct gguf_str){ "t", 1 }, 0, 1, good,
                              &err) == GGUF_E_DUPLICATE,
       "a second tensor of one name: %s", err.message);
    ok(gguf_writer_add_tensor(w, n, 0, 1, zero, &err) == GGUF_E_INVALID,
       "no elements: %s", err.message);
    ok(gguf_writer_add_tensor(w, n, GGUF_DTYPE_Q4_0, 1, odd, &err) ==
           GGUF_E_SHAPE,
       "part of a block: %s", err.message);
    ok(gguf_writer_add_tensor(w, n, 0, 2, huge, &err) == GGUF_E_OVERFLOW,
       "too many elements: %s", err.message);
    ok(gguf_writer_add_tensor(w, n, 4, 1, good, &err) == GGUF_E_UNSUPPORTED,
       "a removed type: %s", err.message);
    ok(gguf_writer_add_tensor(w, n, 0, 5, good, &err) == GGUF_E_INVALID,
       "five dimensions: %s", err.message);
    ok(gguf_writer_add_tensor(w, (struct gguf_str){ "a\nb", 3 }, 0, 1, good,
                              &err) == GGUF_E_INVALID,
       "a line break in a name: %s", err.message);
    ok(gguf_writer_n_tensors(w) == 1 && gguf_writer_data_off(w) == 64 &&
           gguf_writer_file_size(w) == 96,
       "refusals leave the plan alone");
    gguf_writer_destroy(w);

    struct gguf_meta *m;
    if (gguf_meta_create(&m, NULL, &err) != GGUF_OK)
        return;
    static const uint32_t bad[] = { 0, 4, 24, 33 };
    for (size_t i = 0; i < 4; i++)
        ok(gguf_meta_set_u32(m, "general.alignment", bad[i], &err) ==
                   GGUF_OK &&
               gguf_writer_create(&w, m, NULL, &err) == GGUF_E_FORMAT && !w,
           "alignment %u: %s", (unsigned)bad[i], err.message);
    ok(gguf_meta_set_u32(m, "general.alignment", 2 * GGUF_WRITER_MAX_ALIGNMENT,
                         &err) == GGUF_OK &&
           gguf_writer_create(&w, m, NULL, &err) == GGUF_E_LIMIT && !w,
       "padding that takes all memory: %s", err.message);
    ok(gguf_meta_set_u64(m, "general.alignment", 64, &err) == GGUF_OK &&
           gguf_writer_create(&w, m, NULL, &err) == GGUF_E_FORMAT && !w,
       "alignment of another type: %s", err.message);
    gguf_meta_destroy(m);
}

static void check_target(void)
{
    struct gguf_error err;
    struct gguf_file *f = NULL;
    struct gguf_output_params o = GGUF_INIT(struct gguf_output_params);
    const char *t = in_dir("target.gguf"), *l = in_dir("link.gguf");
    static const float v[4] = { 1, 2, 3, 4 };
    struct gguf_writer *w = small_writer();
    ok(gguf_writer_begin_file(w, t, NULL, &err) == GGUF_OK &&
           access(t, F_OK) != 0,
       "a file that is being written has no name yet");
    ok(gguf_writer_commit(w, &err) == GGUF_E_INVALID &&
           strstr(err.message, "'t': 0 bytes written, expected 16"),
       "an incomplete tensor: %s", err.message);
    ok(gguf_writer_begin_tensor(w, 0, &err) == GGUF_OK &&
           gguf_writer_write(w, v, 17, &err) == GGUF_E_INVALID,
       "a byte too many: %s", err.message);
    ok(gguf_writer_begin_tensor(w, 0, &err) == GGUF_E_INVALID, "twice: %s",
       err.message);
    gguf_writer_destroy(w);
    ok(access(t, F_OK) != 0 && n_entries() == 2,
       "giving up leaves nothing behind");

    w = small_writer();
    ok(gguf_writer_begin_file(w, t, NULL, &err) == GGUF_OK &&
           gguf_writer_begin_tensor(w, 0, &err) == GGUF_OK &&
           gguf_writer_write(w, v, 16, &err) == GGUF_OK &&
           gguf_writer_commit(w, &err) == GGUF_OK &&
           gguf_file_open(&f, t, NULL, &err) == GGUF_OK &&
           !memcmp(gguf_file_tensor_data(f, 0), v, 16),
       "a commit gives the name");
    gguf_writer_destroy(w);

    w = small_writer();
    ok(gguf_writer_begin_file(w, t, NULL, &err) == GGUF_E_EXIST,
       "an output that exists: %s", err.message);
    const struct gguf_file *inputs[] = { f };
    o.force = true;
    o.inputs = inputs;
    o.n_inputs = 1;
    ok(link(t, l) == 0 &&
           gguf_writer_begin_file(w, l, &o, &err) == GGUF_E_INVALID,
       "the input under another name, with force: %s", err.message);
    unlink(l);
    ok(symlink("target.gguf", l) == 0 &&
           gguf_writer_begin_file(w, l, &o, &err) == GGUF_E_INVALID,
       "the input through a symbolic link: %s", err.message);
    unlink(l);
    ok(symlink("no-such-file", l) == 0 &&
           gguf_writer_begin_file(w, l, NULL, &err) == GGUF_E_EXIST,
       "a link to nothing, before the work: %s", err.message);
    unlink(l);
    ok(gguf_writer_begin_file(w, dir, &o, &err) == GGUF_E_INVALID,
       "a folder as output: %s", err.message);
    ok(gguf_writer_begin_file(w, "/dev/null", &o, &err) == GGUF_E_INVALID,
       "a device as output: %s", err.message);
    ok(gguf_writer_begin_file(w, in_dir("no/such/x"), &o, &err) == GGUF_E_IO &&
           err.sys_errno == ENOENT,
       "no such folder: %s", err.message);
    gguf_file_close(f);

    chmod(t, 0600);
    struct stat s;
    o.n_inputs = 0;
    ok(gguf_writer_begin_file(w, t, &o, &err) == GGUF_OK &&
           gguf_writer_write_at(w, 0, 0, v + 1, 12, &err) == GGUF_OK &&
           gguf_writer_write_at(w, 0, 12, v, 4, &err) == GGUF_OK &&
           gguf_writer_commit(w, &err) == GGUF_OK && stat(t, &s) == 0 &&
           (s.st_mode & 0777) == 0600 && s.st_size == 96,
       "force replaces, and keeps the mode");
    gguf_writer_destroy(w);
    ok(n_entries() == 3, "no temporaries stay");

    /* another file takes the name during the write */
    const char *late = in_dir("late.gguf");
    w = small_writer();
    FILE *other = NULL;
    ok(gguf_writer_begin_file(w, late, NULL, &err) == GGUF_OK &&
           (other = fopen(late, "w")) != NULL &&
           gguf_writer_write_at(w, 0, 0, v, 16, &err) == GGUF_OK &&
           gguf_writer_commit(w, &err) == GGUF_E_EXIST && n_entries() == 4,
       "a name that was taken meanwhile is not replaced: %s", err.message);
    if (other)
        fclose(other);
    gguf_writer_destroy(w);
}

static void check_space(void)
{
    struct gguf_error err;
    struct gguf_writer *w = NULL;
    static const int64_t ne[] = { INT64_C(1) << 50 };
    ok(gguf_writer_create(&w, NULL, NULL, &err) == GGUF_OK &&
           gguf_writer_add_tensor(w, (struct gguf_str){ "big", 3 }, 0, 1, ne,
                                  &err) == GGUF_OK &&
           gguf_writer_begin_file(w, in_dir("big.gguf"), NULL, &err) ==
               GGUF_E_NOSPACE,
       "a petabyte does not fit: %s", err.message);
    gguf_writer_destroy(w);
}

/* ------------------------------------------- several threads, no memory --- */

struct part {
    struct gguf_writer *w;
    unsigned ith;
    int bad;
};

static void *write_part(void *user)
{
    struct part *p = user;
    uint8_t b[1000];
    memset(b, (int)p->ith, sizeof b);
    for (uint64_t off = p->ith * 1000; off < 40000; off += 4000)
        p->bad += gguf_writer_write_at(p->w, 0, off, b, 1000, NULL) != GGUF_OK;
    return NULL;
}

static void check_threads(void)
{
    static const int64_t ne[] = { 40000 };
    struct gguf_error err;
    struct gguf_writer *w = NULL;
    struct gguf_file *f = NULL;
    struct gguf_str name = { "t", 1 };
    struct part part[4];
    pthread_t thread[4];
    const char *path = in_dir("threads.gguf");
    ok(gguf_writer_create(&w, NULL, NULL, &err) == GGUF_OK &&
           gguf_writer_add_tensor(w, name, GGUF_DTYPE_I8, 1, ne, &err) ==
               GGUF_OK &&
           gguf_writer_begin_file(w, path, NULL, &err) == GGUF_OK,
       "four writers");
    for (unsigned i = 0; i < 4; i++) {
        part[i] = (struct part){ w, i, 0 };
        if (pthread_create(&thread[i], NULL, write_part, &part[i]))
            exit(99);
    }
    int bad = 0;
    for (unsigned i = 0; i < 4; i++) {
        pthread_join(thread[i], NULL);
        bad += part[i].bad;
    }
    ok(!bad && gguf_writer_commit(w, &err) == GGUF_OK &&
           gguf_file_open(&f, path, NULL, &err) == GGUF_OK,
       "are done");
    const uint8_t *d = f ? gguf_file_tensor_data(f, 0) : NULL;
    for (unsigned i = 0; d && i < 40000; i++)
        bad += d[i] != i / 1000 % 4;
    ok(d && !bad, "each wrote its part");
    gguf_file_close(f);
    gguf_writer_destroy(w);
    unlink(path);
}

static enum gguf_status write_with(const struct gguf_allocator *a)
{
    static const int64_t ne[] = { 8 };
    static const uint8_t data[32];
    struct gguf_error err;
    struct gguf_meta *m = NULL;
    struct gguf_writer *w = NULL;
    struct gguf_writer_params p = GGUF_INIT(struct gguf_writer_params);
    struct gguf_output_params o = GGUF_INIT(struct gguf_output_params);
    o.no_sync = o.force = true;
    p.allocator = a;
    enum gguf_status st = gguf_meta_create(&m, a, &err);
    if (st == GGUF_OK)
        st = gguf_meta_set_strz(m, "k", "v", &err);
    if (st == GGUF_OK)
        st = gguf_writer_create(&w, m, &p, &err);
    for (int i = 0; st == GGUF_OK && i < 70; i++) {
        char name[8];
        struct gguf_str s = { name,
                              (size_t)snprintf(name, sizeof name, "%d", i) };
        st = gguf_writer_add_tensor(w, s, 0, 1, ne, &err);
    }
    if (st == GGUF_OK &&
        gguf_writer_begin_file(w, dir, &o, &err) == GGUF_E_NOMEM)
        st = GGUF_E_NOMEM; /* otherwise it fails since dir is a folder, and can
                            * be opened again */
    if (st == GGUF_OK)
        st = gguf_writer_begin_file(w, in_dir("nomem.gguf"), &o, &err);
    for (size_t i = 0; st == GGUF_OK && i < 70; i++) {
        st = gguf_writer_begin_tensor(w, i, &err);
        if (st == GGUF_OK)
            st = gguf_writer_write(w, data, sizeof data, &err);
    }
    if (st == GGUF_OK)
        st = gguf_writer_commit(w, &err);
    gguf_writer_destroy(w);
    gguf_meta_destroy(m);
    return st;
}

static void check_nomem(void)
{
    struct failalloc fa;
    unsigned n = 0, bad = 0;
    for (;; n++) {
        int files = n_entries();
        enum gguf_status st = write_with(failalloc_init(&fa, n));
        bad += fa.live != 0;
        if (fa.calls <= n) {
            bad += st != GGUF_OK;
            break;
        }
        /* the last calls that may fail come after naming the file */
        bad += st != GGUF_E_NOMEM || n_entries() != files;
    }
    ok(bad == 0 && n > 10, "memory may run out at each of %u calls", n);
}

int main(void)
{
    if (!scratch_make(dir))
        return 99;
    enum { ROUNDS = 300 };
    int before = tap_bad;
    for (unsigned i = 0; i < ROUNDS; i++)
        check_round_trip(i);
    ok(tap_bad == before,
       "%d random files come back equal and write the "
       "same bytes again",
       ROUNDS);
    check_plan();
    check_target();
    check_space();
    check_threads();
    check_nomem();
    if (!scratch_remove(dir))
        return 99;
    return done_testing();
}
