/// The version of the program; packages read it here.
let programVersion = "1.0.0"
