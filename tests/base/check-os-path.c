/* SPDX-License-Identifier: MIT */
/* check-os-path - folders and names of paths, by the rule of each system */
#include "config.h"
#include "base/os/os_path.h"
#include "tests/tap.h"

#include <string.h>

enum { P = 1 << GG_OS_PATH_POSIX, W = 1 << GG_OS_PATH_WINDOWS };

/* A path as folder and name, and the folder without separators at its end. The
 * rule of Windows is that of its documentation, "Naming Files, Paths, and
 * Namespaces". */
static const struct {
    unsigned rules;
    const char *folder, *name;
    size_t trim;
} rows[] = {
    { P | W, "", "", 0 },
    { P | W, "", "a.gguf", 0 },
    { P | W, "a/", "b.gguf", 1 },
    { P | W, "a//", "b", 1 },
    { P | W, "/", "b", 1 },
    { P | W, "a/b/", "", 3 },
    { P | W, "../", "b c.gguf", 2 },
    { P, "", "C:\\a\\b", 0 },
    { P, "", "C:b", 0 },
    { P, "C:/", "b", 2 },
    { P, "", "a\\b", 0 },
    { W, "a\\", "b", 1 },
    { W, "a\\b/", "c", 3 },
    { W, "a/b\\\\", "c", 3 },
    { W, "\\", "b", 1 },
    { W, "C:", "", 2 },
    { W, "c:", "b.gguf", 2 },
    { W, "C:\\", "b", 3 },
    { W, "C:/", "", 3 },
    { W, "Z:\\a\\", "b", 4 },
    { W, "\\\\?\\C:\\a\\", "b", 8 },
    { W, "\\\\host\\share\\", "b", 12 },
    { W, "", "1:b", 0 },
    { W, "", "bc:d", 0 },
    { W, "", "@:d", 0 },
    { W, "", "[:d", 0 },
};

static void check_row(size_t i, enum gg_os_path_rule rule)
{
    char path[100];
    const size_t n_folder = strlen(rows[i].folder);
    const size_t n = n_folder + strlen(rows[i].name);
    if (!(rows[i].rules >> rule & 1))
        return;
    snprintf(path, sizeof path, "%s%s", rows[i].folder, rows[i].name);
    const size_t got = gg_os_path_folder_size_by(rule, path, n);
    const size_t trim = gg_os_path_trim_by(rule, path, n_folder);
    ok(got == n_folder && trim == rows[i].trim,
       "%s, '%s': a folder of %zu bytes, %zu without separators",
       rule == GG_OS_PATH_POSIX ? "POSIX" : "Windows", path, got, trim);
}

int main(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        check_row(i, GG_OS_PATH_POSIX);
        check_row(i, GG_OS_PATH_WINDOWS);
    }
    ok(gg_os_path_separates_by(GG_OS_PATH_WINDOWS, '\\') &&
           !gg_os_path_separates_by(GG_OS_PATH_POSIX, '\\'),
       "'\\' separates names on Windows only");
    ok(!strcmp(gg_os_path_name("a/b"), "b"), "the name of this system's path");
    return done_testing();
}
