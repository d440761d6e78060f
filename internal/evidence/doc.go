// Package evidence shows of the whole program what other tests show of its parts:
// that nothing acknowledged is lost and nothing is held twice, whatever happens
// to the process, its disk, its connections and the program that it serves.
//
// Its tests build the program, run it as a process between a fake platform and an
// HTTP server, both on loopback, and kill, stop, starve and rob it; what they judge
// by is the platform's book, the server's and the tables. What takes hours runs
// in a bubble of simulated time, with the same parts wired in the same way over
// networks in memory. There is nothing but tests here; "make soak" runs the longest
// of them at its full length.
package evidence
