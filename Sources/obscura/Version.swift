/// The version of the program; packages read it here.
let programVersion = "0.1.0"
