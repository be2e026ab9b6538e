/* Decodes a JPEG whose end may not have arrived yet. libjpeg-turbo's interface for that (libjpeg.txt, "I/O
   suspension" and "Data source and destination") reports errors by longjmp, which Swift cannot call; its other
   interface, TurboJPEG, needs the whole file first. */
#ifndef OBSCURA_JPEG_STREAM_H
#define OBSCURA_JPEG_STREAM_H

/* Blocks until at least `count` bytes or the whole file have arrived. Returns the number of arrived bytes. */
typedef long (*jpeg_stream_wait)(const void *context, long count);

typedef struct jpeg_stream jpeg_stream;

enum jpeg_stream_colors { jpeg_stream_unknown, jpeg_stream_gray, jpeg_stream_color, jpeg_stream_inks };

/* Reads the header, as far as the first scan. Null if it is invalid or memory is short. `count` is the length of
   `bytes`. `bytes` and `context` must outlive the stream. */
jpeg_stream *jpeg_stream_open(const unsigned char *bytes, long count, jpeg_stream_wait wait, const void *context);

/* The size and colours that the header claims. */
long jpeg_stream_width(const jpeg_stream *stream);
long jpeg_stream_height(const jpeg_stream *stream);
enum jpeg_stream_colors jpeg_stream_colors_of(const jpeg_stream *stream);
/* Bytes of the file read so far. Directly after opening: all bytes before the first scan. */
long jpeg_stream_position(const jpeg_stream *stream);

/* Decodes the picture, reduced by `divisor` (1, 2, 4 or 8), sides rounded up, into `height` rows that begin `row_bytes`
   apart: one byte a pixel for grey, else four (RGBX, CMYK as stored). Ignores libjpeg's warnings, and scans of which
   there are more than any program writes. Returns 0, or -1 for damage that stops libjpeg, unknown colours, a wrong
   `height`, or too small `row_bytes`. Call once. */
int jpeg_stream_decode(jpeg_stream *stream, int divisor, unsigned char *rows, long row_bytes, long height);

/* Whether pixels that were decoded were not in the file, which ends before them or has a marker in their place: they
   are grey. A missing marker of the end is no such fault in a picture of one scan. */
int jpeg_stream_lacks_pixels(const jpeg_stream *stream);

void jpeg_stream_close(jpeg_stream *stream);

#endif
