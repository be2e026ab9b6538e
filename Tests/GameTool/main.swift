import Foundation
import Game

exit(playFromCommandLine(Array(CommandLine.arguments.dropFirst())))
