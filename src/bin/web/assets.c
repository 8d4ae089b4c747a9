/*
 * assets.c
 *	  What is inside: the style, the script and the icon.
 *
 * A name has the hash of the content, so that a browser keeps it for good.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "web.h"

#include "assets.inc"

typedef struct Asset
{
	const char *name;
	const char *type;
	const unsigned char *content;
	size_t length;
	char path[64];
	char tag[32];
	struct MHD_Response *plain;
	struct MHD_Response *packed;
	struct MHD_Response *unchanged;
} Asset;

#define ASSET(name, type, content)                                            \
	{                                                                         \
		name, type, content, sizeof(content), "", "", NULL, NULL, NULL        \
	}

static Asset assets[] = {
	ASSET("style.css", "text/css; charset=utf-8", style_css),
	ASSET("live.js", "text/javascript; charset=utf-8", live_js),
	ASSET("icon.svg", "image/svg+xml", icon_svg),
};

#define ASSETS (sizeof(assets) / sizeof(assets[0]))

#define FLUSH_ROOM 16 /* beyond deflateBound(), of an empty block */

/* Packs a text; false: there is no memory for it. */
static bool
pack(const Buffer *text, int window, int flush, Buffer *packed)
{
	z_stream stream = {0};
	int end;

	if (deflateInit2(&stream, 5, Z_DEFLATED, window, 7, Z_DEFAULT_STRATEGY) !=
		Z_OK)
		return false;
	packed->room = deflateBound(&stream, text->length) + FLUSH_ROOM;
	packed->data = allocate(packed->room);
	stream.next_in = (unsigned char *) text->data;
	stream.avail_in = text->length;
	stream.next_out = (unsigned char *) packed->data;
	stream.avail_out = packed->room;
	end = deflate(&stream, flush);
	packed->length = stream.total_out;
	deflateEnd(&stream);
	return end == Z_STREAM_END ||
		   (flush != Z_FINISH && end == Z_OK && stream.avail_out > 0);
}

/* Packs a text by gzip; false: it stays as it is. */
bool
asset_pack(Buffer *body)
{
	Buffer packed = {0};

	if (!pack(body, 15 + 16, Z_FINISH, &packed))
	{
		buffer_free(&packed);
		return false;
	}
	buffer_free(body);
	*body = packed;
	return true;
}

/*
 * Appends a text as blocks of deflate that are not compressed, and an empty one,
 * as a flush of zlib ends: Go's reader, which Caddy has, keeps back what stands
 * before the next of these.
 */
void
blocks_store(Buffer *blocks, const char *text, size_t length)
{
	static const char end[] = {0, 0, 0, (char) 0xFF, (char) 0xFF};

	while (length > 0)
	{
		size_t n = length < 0xFFFF ? length : 0xFFFF;
		char head[] = {0, (char) n, (char) (n >> 8), (char) ~n,
					   (char) (~n >> 8)};

		buffer_add(blocks, head, sizeof(head));
		buffer_add(blocks, text, n);
		text += n;
		length -= n;
	}
	buffer_add(blocks, end, sizeof(end));
}

/*
 * Returns a text as blocks of deflate that refer to nothing before them, and end at
 * a whole byte: in a stream they may follow any others.
 */
Buffer
blocks_pack(const Buffer *text)
{
	Buffer blocks = {0};

	if (!pack(text, -15, Z_FULL_FLUSH, &blocks))
	{
		buffer_free(&blocks);
		blocks_store(&blocks, text->data, text->length);
	}
	return blocks;
}

static struct MHD_Response *
response_of(const Asset *asset, const char *data, size_t length, bool packed)
{
	struct MHD_Response *response =
		MHD_create_response_from_buffer(length, (void *) (uintptr_t) data,
										MHD_RESPMEM_PERSISTENT);

	if (response == NULL)
		abort();
	MHD_add_response_header(response, "Content-Type", asset->type);
	MHD_add_response_header(response, "Cache-Control",
							"public, max-age=31536000, immutable");
	MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	MHD_add_response_header(response, "Vary", "Accept-Encoding");
	MHD_add_response_header(response, "ETag", asset->tag);
	if (packed)
		MHD_add_response_header(response, "Content-Encoding", "gzip");
	return response;
}

static void
prepare(Asset *asset)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	const char *dot = strrchr(asset->name, '.');
	const char *content = (const char *) asset->content;
	Buffer packed = {0};

	for (size_t i = 0; i < asset->length; i++)
		hash = (hash ^ asset->content[i]) * UINT64_C(0x100000001b3);
	snprintf(asset->path, sizeof(asset->path), "/%.*s-%016" PRIx64 "%s",
			 (int) (dot - asset->name), asset->name, hash, dot);
	snprintf(asset->tag, sizeof(asset->tag), "\"%016" PRIx64 "\"", hash);
	buffer_add(&packed, content, asset->length);
	asset->plain = response_of(asset, content, asset->length, false);
	asset->unchanged = response_of(asset, "", 0, false);
	if (asset_pack(&packed))
		asset->packed = response_of(asset, packed.data, packed.length, true);
}

/* Makes all answers once. */
void
asset_start(void)
{
	for (size_t i = 0; i < ASSETS; i++)
		prepare(&assets[i]);
}

/* Returns the path under which the pages have it. */
const char *
asset_path(const char *name)
{
	for (size_t i = 0; i < ASSETS; i++)
		if (strcmp(assets[i].name, name) == 0)
			return assets[i].path;
	return "";
}

/* Returns the answer for a path, or NULL. */
struct MHD_Response *
asset_find(const char *path, bool packed, const char *known,
		   unsigned int *status)
{
	for (size_t i = 0; i < ASSETS; i++)
	{
		const Asset *asset = &assets[i];

		if (strcmp(asset->path, path) != 0)
			continue;
		if (known != NULL && strcmp(known, asset->tag) == 0)
		{
			*status = MHD_HTTP_NOT_MODIFIED;
			return asset->unchanged;
		}
		return packed && asset->packed != NULL ? asset->packed : asset->plain;
	}
	return NULL;
}
