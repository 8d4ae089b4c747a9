/*
 * hmac.h
 *	  Signs bytes by HMAC-SHA-256, and compares signatures.
 */
#ifndef TQ_HMAC_H
#define TQ_HMAC_H

#include "common/hmac.h"
#include "common/sha2.h"

#define TQ_HMAC_BYTES PG_SHA256_DIGEST_LENGTH
#define TQ_HMAC_CHARS 44 /* in base64 */

extern pg_hmac_ctx *tq_hmac_begin(void);
extern void tq_hmac_sign(pg_hmac_ctx *context, const uint8 *key, size_t nkey,
						 const char *message, size_t len, char *signature);
extern void tq_hmac_end(pg_hmac_ctx *context);
extern bool tq_hmac_is_same(const char *a, const char *b, size_t len);
extern void tq_random_bytes(uint8 *bytes, size_t len);

#endif /* TQ_HMAC_H */
