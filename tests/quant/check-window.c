/* check-window.c - progress, cancelling and the memory of jobs */
#include "config.h"
#include "base/compiler.h"
#include "tests/quant/fixture.h"
#include "tests/tap.h"

struct watch {
    uint64_t last, total;
    int calls, stop_at;
    bool wrong;
};

static int watch(void *user, uint64_t done, uint64_t total)
{
    struct watch *w = user;
    w->wrong |= done < w->last || done > total;
    w->last = done;
    w->total = total;
    return ++w->calls == w->stop_at;
}

static void check_progress(const char *in)
{
    const char *out = in_dir("o.gguf");
    struct gguf_error err;
    struct setup s = SETUP("Q8_0");
    struct watch w = { 0 };
    s.threads = 1;
    s.p.progress = watch;
    s.p.progress_user = &w;
    ok(quantize(in, out, s, &err) == GGUF_OK && !w.wrong && w.calls > 10 &&
           w.last == w.total,
       "progress goes to the end in %d steps", w.calls);
    remove(out);
    int before = n_entries();
    w = (struct watch){ .stop_at = 1 };
    ok(quantize(in, out, s, &err) == GGUF_E_CANCELLED && w.calls == 1 &&
           n_entries() == before,
       "a callback stops the job: %s", err.message);
}

struct counter {
    size_t now, most;
    int left; /* calls that still succeed; < 0: all */
};

static void *count_alloc(void *user, size_t size)
{
    struct counter *c = user;
    if (!c->left)
        return NULL;
    c->left -= c->left > 0;
    size_t *p = malloc(size + 64);
    if (!p)
        return NULL;
    *p = size;
    c->now += size;
    c->most = GG_MAX(c->most, c->now);
    return (char *)p + 64;
}

static void count_free(void *user, void *ptr)
{
    struct counter *c = user;
    size_t *p = (size_t *)(void *)((char *)ptr - 64);
    c->now -= *p;
    free(p);
}

static void check_memory(const char *in)
{
    const char *out = in_dir("o.gguf");
    struct gguf_error err;
    struct setup s = SETUP("Q4_K_M");
    struct counter c = { 0, 0, -1 };
    struct gguf_allocator a = { count_alloc, count_free, &c };
    s.p.allocator = &a;
    s.p.max_memory = 100000;
    ok(quantize(in, out, s, &err) == GGUF_OK && !c.now &&
           c.most < 100000 + 600000,
       "%zu bytes at most, of them buffers of 100000 %s", c.most, err.message);
    s.p.max_memory = 1000;
    ok(quantize(in, out, s, &err) == GGUF_E_LIMIT, "too little: %s",
       err.message);
    s.p.max_memory = 0;
    remove(out);
    int before = n_entries(), bad = 0, n = 0;
    for (enum gguf_status st = GGUF_E_NOMEM; st != GGUF_OK && n < 5000; n++) {
        c.left = n;
        st = quantize(in, out, s, &err);
        bad += c.now != 0 || (st != GGUF_OK &&
                              (st != GGUF_E_NOMEM || n_entries() != before));
    }
    ok(!bad && n > 10 && n < 5000,
       "each of %d allocations may fail, and nothing is left", n - 1);
    remove(out);
    s.resume = true;
    bad = n = 0;
    for (enum gguf_status st = GGUF_E_NOMEM; st != GGUF_OK && n < 5000; n++) {
        c.left = n;
        st = quantize(in, out, s, &err);
        bad += c.now != 0 || (st != GGUF_OK && st != GGUF_E_NOMEM);
    }
    ok(!bad && n > 10 && n < 5000 && n_entries() == before + 1,
       "and each of %d of a run that can be resumed", n - 1);
    remove(out);
}

int main(void)
{
    if (!enter_dir())
        return 99;
    char in[4000]; /* in_dir forgets */
    snprintf(in, sizeof in, "%s", in_dir("in.gguf"));
    write_model(in, -1, 0, 0);
    check_progress(in);
    check_memory(in);
    remove(in);
    ok(leave_dir(), "the folder is empty again");
    return done_testing();
}
