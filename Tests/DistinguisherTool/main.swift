import Distinguisher
import Foundation

exit(playFromCommandLine(Array(CommandLine.arguments.dropFirst())))
