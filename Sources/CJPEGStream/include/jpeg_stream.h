/* Decodes a JPEG of which the end may still be on its way. libjpeg-turbo's interface for that (libjpeg.txt, "I/O
   suspension" and "Data source and destination") reports errors by longjmp, which Swift cannot call; its other one,
   TurboJPEG, wants the whole file first. */
#ifndef OBSCURA_JPEG_STREAM_H
#define OBSCURA_JPEG_STREAM_H

/* Blocks until at least so many bytes of the file are there, or all of it. Returns how many are. */
typedef long (*jpeg_stream_wait)(const void *context, long count);

typedef struct jpeg_stream jpeg_stream;

enum jpeg_stream_colors { jpeg_stream_unknown, jpeg_stream_gray, jpeg_stream_color, jpeg_stream_inks };

/* Reads the header, as far as the first scan. Null when it is none or there is no memory. `bytes` are `count`; they and
   `context` must stay until the stream is closed. */
jpeg_stream *jpeg_stream_open(const unsigned char *bytes, long count, jpeg_stream_wait wait, const void *context);

/* What the file claims. */
long jpeg_stream_width(const jpeg_stream *stream);
long jpeg_stream_height(const jpeg_stream *stream);
enum jpeg_stream_colors jpeg_stream_colors_of(const jpeg_stream *stream);
/* Bytes of the file read so far: once it is open, all before the first scan. */
long jpeg_stream_position(const jpeg_stream *stream);

/* Decodes the picture, reduced by `divisor` (1, 2, 4 or 8), sides rounded up, into `height` rows that begin `row_bytes`
   apart: one byte a pixel for grey, else four (RGBX, CMYK as stored). What libjpeg only warns of is passed over. 0, or
   -1 for damage that stops it or another height than the picture has. To be called once. */
int jpeg_stream_decode(jpeg_stream *stream, int divisor, unsigned char *rows, long row_bytes, long height);

void jpeg_stream_close(jpeg_stream *stream);

#endif
