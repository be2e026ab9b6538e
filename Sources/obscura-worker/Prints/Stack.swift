internal import PhotoImaging
func drawStack(_ p: PrintFile, size: PixelSize) -> Pixels? { nil }
func drawSheet(_ p: PrintFile) -> Pixels? { nil }
