/* SPDX-License-Identifier: MIT */
/* address.h - removing secrets from addresses
 *
 * User, password, query and fragment of an address may contain a token or a
 * signature. Messages, reports and metadata show addresses without them.
 */
#ifndef TOOLS_ADDRESS_H
#define TOOLS_ADDRESS_H

#include <stddef.h>

/* Remove user, password, query and fragment from every address, SCHEME://...,
 * in the text s, which becomes shorter. An address ends at a blank. */
void address_remove_secrets(char *s);

/* Secret parts of an address. user points to "USER:PASSWORD@", query to the
 * first '?' or '#'. */
struct address_secret {
    const char *user, *query;
    size_t n_user, n_query;
};
/* Find the secret parts of the address url. Returns false if it has no such
 * part. */
int address_find_secret(const char *url, struct address_secret *out);

#endif
