/* SPDX-License-Identifier: MIT */
/* check-resident.c - pieces of a file that a function reads stay in memory
 * while they are held */
#include "config.h"
#include "base/os/os.h"
#include "base/resident.h"
#include "tests/tap.h"

enum { PAGES = 200, MOST = 40 };

/* Byte i of the file, never 0: memory that was released reads as zeros. */
static uint8_t byte_at(uint64_t i)
{
    return (uint8_t)(1 + (i * 7 + i / 251) % 250);
}

struct from {
    uint64_t n_bytes;
    bool fails;
};

static enum gguf_status read_bytes(void *user, uint64_t off, void *dst,
                                   size_t size, struct gguf_error *err)
{
    struct from *f = user;
    uint8_t *p = dst;
    if (f->fails)
        return gg_error_set(err, GGUF_E_IO, off, "the line is dead");
    f->n_bytes += size;
    for (size_t i = 0; i < size; i++)
        p[i] = byte_at(off + i);
    return GGUF_OK;
}

static bool is_resident(const struct gg_mapfile *m, uint64_t off,
                        uint64_t size)
{
    for (uint64_t i = off; i < off + size; i++)
        if (m->data[i] != byte_at(i))
            return false;
    return true;
}

struct piece {
    uint64_t off, size;
};

/* Many random pieces, some of them held at the same time, as by threads. */
static void check_random(struct gg_resident *w, const struct gg_mapfile *m)
{
    enum { AT_ONCE = 6 };
    struct piece held[AT_ONCE] = { { 0, 0 } };
    bool good = true;
    for (int n = 0; n < 3000 && good; n++) {
        struct piece *p = &held[n % AT_ONCE];
        good = is_resident(m, p->off, p->size);
        gg_resident_release(w, p->off, p->size);
        p->off = rnd_below(m->size);
        p->size = rnd_below(m->size / 50);
        if (p->size > m->size - p->off)
            p->size = m->size - p->off;
        good = good && gg_resident_hold(w, p->off, p->size, NULL) == GGUF_OK;
        for (int k = 0; k < AT_ONCE && good; k++)
            good = is_resident(m, held[k].off, held[k].size);
    }
    for (int k = 0; k < AT_ONCE; k++)
        gg_resident_release(w, held[k].off, held[k].size);
    ok(good, "held pieces are resident");
    ok(w->n_idle <= w->most_idle &&
           w->most_idle <= m->size / w->block_size / 10,
       "and not much of the rest: %u blocks", (unsigned)w->n_idle);
}

/* Memory that was resident before stays, whatever is held and released. */
static void check_pinned(uint64_t size, uint64_t upto)
{
    struct from from = { 0, false };
    struct gg_mapfile m;
    struct gg_resident w;
    struct gguf_error err;
    const bool made =
        !gg_mapfile_open_reader(&m, read_bytes, &from, size, 0, 0, &err) &&
        !gg_mapfile_fetch(&m, 0, upto, &err) &&
        !gg_resident_init(&w, &m, NULL, &err);
    ok(made, "a file whose beginning was read %s", err.message);
    if (!made)
        return;
    gg_resident_pin(&w, upto);
    bool good = true;
    from.n_bytes = 0;
    for (int n = 0; n < 3 && good; n++)
        for (uint64_t at = 0; at + 1000 <= size && good; at += 1000) {
            good = gg_resident_hold(&w, at, 1000, NULL) == GGUF_OK &&
                   is_resident(&m, at, 1000) && is_resident(&m, 0, upto);
            gg_resident_release(&w, at, 1000);
        }
    ok(good && from.n_bytes <= 3 * (size - upto / w.block_size * w.block_size),
       "%" PRIu64 " bytes that are pinned stay", upto);
    gg_resident_fini(&w);
    gg_mapfile_close(&m);
}

int main(void)
{
    const uint64_t page = gg_os_page_size();
    const uint64_t size = PAGES * page + 100;
    struct from from = { 0, false };
    struct gg_mapfile m;
    struct gg_resident w;
    struct gguf_error err;
    if (gg_mapfile_open_reader(&m, read_bytes, &from, size, 0, 0, &err) ||
        gg_resident_init(&w, &m, NULL, &err))
        return 99;
    check_random(&w, &m);
    check_pinned(size, 20 * page);
    check_pinned(size, 20 * page + 123);
    check_pinned(size, size);

    from.n_bytes = 0;
    bool good = true;
    for (uint64_t at = 0; at + 1000 <= size && good; at += 1000) {
        good = gg_resident_hold(&w, at, 1000, NULL) == GGUF_OK &&
               is_resident(&m, at, 1000);
        gg_resident_release(&w, at, 1000);
    }
    ok(good && from.n_bytes <= size,
       "in order, each byte is asked for once: %" PRIu64 " of %" PRIu64,
       from.n_bytes, size);

    good = gg_resident_hold(&w, 0, MOST * page, NULL) == GGUF_OK;
    gg_resident_release(&w, 0, MOST * page);
    from.n_bytes = 0;
    good = good && gg_resident_hold(&w, 0, MOST * page, NULL) == GGUF_OK &&
           is_resident(&m, 0, MOST * page);
    gg_resident_release(&w, 0, MOST * page);
    ok(good && !from.n_bytes, "a large piece stays until the next one");

    from.fails = true;
    const uint64_t off = 100 * page;
    ok(gg_resident_hold(&w, off, 3 * page, &err) == GGUF_E_IO &&
           !strcmp(err.message, "the line is dead"),
       "a failure is passed on");
    from.fails = false;
    ok(gg_resident_hold(&w, off, 3 * page, NULL) == GGUF_OK &&
           is_resident(&m, off, 3 * page),
       "and the next one has the bytes");
    gg_resident_release(&w, off, 3 * page);
    ok(gg_resident_hold(&w, size, 0, NULL) == GGUF_OK,
       "nothing is always there");
    gg_resident_release(&w, size, 0);
    gg_resident_fini(&w);
    gg_resident_fini(&w);
    gg_mapfile_close(&m);
    return done_testing();
}
