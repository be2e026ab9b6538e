#include "jpeg_stream.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>
#include <jerror.h>

struct jpeg_stream {
  struct jpeg_decompress_struct decoder;
  struct jpeg_error_mgr errors;
  struct jpeg_source_mgr source;
  struct jpeg_progress_mgr progress;
  int scans_max;
  int is_limited, lacks_pixels; /* scans were left out on purpose; pixels were missing */
  jmp_buf failed;
  const unsigned char *bytes;
  long count, given; /* length of the file; bytes of it given to libjpeg */
  jpeg_stream_wait wait;
  const void *context;
};

/* Scans of a picture that are read: all that programs write. libjpeg's own writer makes 10, and takes at most 100 from
   a script (rdswitch.c); libtiff reads 100. Each scan visits every pixel, so large pictures get fewer: as many as cost
   what 100 do at 24 megapixels. */
static const int scans_limit = 100, scans_least = 20;
static const long scanned_pixels_max = 100L * 24000000;

static jpeg_stream *of(j_common_ptr decoder) { return (jpeg_stream *)decoder->client_data; }

static void fail(j_common_ptr decoder) { longjmp(of(decoder)->failed, 1); }

static void say_nothing(j_common_ptr decoder) { (void)decoder; }

/* Instead of jerror.c's emit_message, which counts warnings. */
static void note(j_common_ptr decoder, int level) {
  if (level >= 0) return;
  decoder->err->num_warnings++;
  /* The decoder of codes needs bits behind a marker: jdhuff.c, "no more bytes". */
  if (decoder->err->msg_code == JWRN_HIT_MARKER && !of(decoder)->is_limited) of(decoder)->lacks_pixels = 1;
}

static void begin(j_decompress_ptr decoder) { (void)decoder; }

static boolean fill(j_decompress_ptr decoder) {
  static const JOCTET end[] = {0xFF, JPEG_EOI};
  jpeg_stream *stream = of((j_common_ptr)decoder);
  if (stream->given == stream->count) {
    /* As jdatasrc.c does: the decoded part is worth showing. */
    WARNMS(decoder, JWRN_JPEG_EOF);
    /* Of a picture in several scans the rest may be missing between two of them. */
    if (decoder->progressive_mode && !stream->is_limited) stream->lacks_pixels = 1;
    stream->source.next_input_byte = end;
    stream->source.bytes_in_buffer = sizeof end;
    return TRUE;
  }
  long there = stream->wait(stream->context, stream->given + 1);
  stream->source.next_input_byte = stream->bytes + stream->given;
  stream->source.bytes_in_buffer = (size_t)(there - stream->given);
  stream->given = there;
  return TRUE;
}

static void skip(j_decompress_ptr decoder, long count) {
  struct jpeg_source_mgr *source = decoder->src;
  if (count <= 0) return;
  while ((size_t)count > source->bytes_in_buffer) {
    count -= (long)source->bytes_in_buffer;
    fill(decoder);
  }
  source->next_input_byte += count;
  source->bytes_in_buffer -= (size_t)count;
}

/* Ends the file for libjpeg where it has too many scans: those before show nearly all. */
static void limit_scans(j_common_ptr common) {
  jpeg_stream *stream = of(common);
  if (stream->decoder.input_scan_number <= stream->scans_max) return;
  stream->is_limited = 1;
  stream->given = stream->count;
  stream->source.bytes_in_buffer = 0;
}

static int scans_for(long pixels) {
  long scans = pixels > 0 ? scanned_pixels_max / pixels : scans_limit;
  return scans < scans_least ? scans_least : scans > scans_limit ? scans_limit : (int)scans;
}

jpeg_stream *jpeg_stream_open(const unsigned char *bytes, long count, jpeg_stream_wait wait, const void *context) {
  jpeg_stream *stream = calloc(1, sizeof *stream);
  if (!stream) return NULL;
  stream->bytes = bytes;
  stream->count = count;
  stream->wait = wait;
  stream->context = context;
  stream->decoder.err = jpeg_std_error(&stream->errors);
  stream->errors.error_exit = fail;
  stream->errors.output_message = say_nothing;
  stream->errors.emit_message = note;
  stream->decoder.client_data = stream;
  if (setjmp(stream->failed)) {
    jpeg_stream_close(stream);
    return NULL;
  }
  jpeg_create_decompress(&stream->decoder);
  stream->source.init_source = begin;
  stream->source.fill_input_buffer = fill;
  stream->source.skip_input_data = skip;
  stream->source.resync_to_restart = jpeg_resync_to_restart;
  stream->source.term_source = begin;
  stream->decoder.src = &stream->source;
  stream->progress.progress_monitor = limit_scans;
  stream->decoder.progress = &stream->progress;
  jpeg_read_header(&stream->decoder, TRUE);
  stream->scans_max = scans_for((long)stream->decoder.image_width * (long)stream->decoder.image_height);
  return stream;
}

long jpeg_stream_width(const jpeg_stream *stream) { return stream->decoder.image_width; }
long jpeg_stream_height(const jpeg_stream *stream) { return stream->decoder.image_height; }

enum jpeg_stream_colors jpeg_stream_colors_of(const jpeg_stream *stream) {
  switch (stream->decoder.jpeg_color_space) {
    case JCS_GRAYSCALE: return jpeg_stream_gray;
    case JCS_RGB:
    case JCS_YCbCr: return jpeg_stream_color;
    case JCS_CMYK:
    case JCS_YCCK: return jpeg_stream_inks;
    default: return jpeg_stream_unknown;
  }
}

long jpeg_stream_position(const jpeg_stream *stream) { return stream->given - (long)stream->source.bytes_in_buffer; }

int jpeg_stream_decode(jpeg_stream *stream, int divisor, unsigned char *rows, long row_bytes, long height) {
  j_decompress_ptr decoder = &stream->decoder;
  if (setjmp(stream->failed)) return -1;
  switch (jpeg_stream_colors_of(stream)) {
    case jpeg_stream_gray: decoder->out_color_space = JCS_GRAYSCALE; break;
    case jpeg_stream_color: decoder->out_color_space = JCS_EXT_RGBX; break;
    case jpeg_stream_inks: decoder->out_color_space = JCS_CMYK; break;
    case jpeg_stream_unknown: return -1;
  }
  decoder->scale_num = 1;
  decoder->scale_denom = (unsigned)divisor;
  jpeg_start_decompress(decoder);
  if ((long)decoder->output_height != height ||
      (long)decoder->output_width * decoder->output_components > row_bytes)
    return -1;
  while (decoder->output_scanline < decoder->output_height) {
    JSAMPROW row = rows + (long)decoder->output_scanline * row_bytes;
    jpeg_read_scanlines(decoder, &row, 1);
  }
  return 0;
}

int jpeg_stream_lacks_pixels(const jpeg_stream *stream) { return stream->lacks_pixels; }

void jpeg_stream_close(jpeg_stream *stream) {
  jpeg_destroy_decompress(&stream->decoder);
  free(stream);
}
