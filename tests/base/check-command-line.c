/* SPDX-License-Identifier: MIT */
/* check-command-line - command lines of Windows are split as Microsoft's C
 * library splits them */
#include "config.h"
#include "base/os/os_command_line.h"
#include "tests/tap.h"

#include <stdlib.h>
#include <string.h>

/* Lines after the program's name, and their arguments with '|' after each and
 * '*' before those that are patterns. The first six are the examples of
 * "Parsing C command-line arguments" in Microsoft's documentation. */
static const struct {
    const char *line, *want;
} rows[] = {
    { "\"abc\" d e", "abc|d|e|" },
    { "a\\\\b d\"e f\"g h", "a\\\\b|de fg|h|" },
    { "a\\\\\\\"b c d", "a\\\"b|c|d|" },
    { "a\\\\\\\\\"b c\" d e", "a\\\\b c|d|e|" },
    { "a\"b\"\" c d", "ab\" c d|" },
    { "\"a b c\" d e", "a b c|d|e|" },
    { "", "" },
    { " \t ", "" },
    { "\"\"", "|" },
    { "\"\" a \"\"", "|a||" },
    { "C:\\a\\b \"C:\\a b\\c\"", "C:\\a\\b|C:\\a b\\c|" },
    { "\"C:\\a\\\\\" b", "C:\\a\\|b|" },
    { "C:\\a\\ b\\", "C:\\a\\|b\\|" },
    { "'a b'", "'a|b'|" },
    { "*.gguf \"*.gguf\" a?b", "**.gguf|*.gguf|*a?b|" },
    { "\"C:\\a b\\\"*.gguf", "C:\\a b\"*.gguf|" },
    { "\"C:\\a b\"\\*.gguf", "*C:\\a b\\*.gguf|" },
    { "Gr\303\274\303\237e \360\237\246\231",
      "Gr\303\274\303\237e|\360\237\246\231|" },
};

/* Split a line in memory of exactly the promised sizes. */
static void check_line(const char *program, const char *name, size_t row)
{
    char line[200], got[200] = "";
    snprintf(line, sizeof line, "%s%s%s", program, *rows[row].line ? " " : "",
             rows[row].line);
    char *text = malloc(strlen(line) + 2);
    struct gg_os_word *words = calloc(strlen(line) / 2 + 2, sizeof *words);
    if (!text || !words)
        exit(99);
    const size_t n = gg_os_command_line_split(line, text, words);
    for (size_t i = 1; i < n; i++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s%s|",
                 words[i].is_pattern ? "*" : "", words[i].text);
    ok(!strcmp(words[0].text, name) && !strcmp(got, rows[row].want),
       "%s: '%s' and %s", line, words[0].text, got);
    free(text);
    free(words);
}

int main(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_line("C:\\bin\\gguf-info.exe", "C:\\bin\\gguf-info.exe", i);
    check_line("\"C:\\My Tools\\gguf-info.exe\"",
               "C:\\My Tools\\gguf-info.exe", 0);
    check_line("\"C:\\a\\\"", "C:\\a\\", 0);
    check_line("", "", 0);
    check_line("*.exe", "*.exe", 7);
    return done_testing();
}
