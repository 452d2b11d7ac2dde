// Package cores puts the functions of service chains on cores so that the
// fullest core is as little loaded as can be, and chooses between topologies of
// a chain by what they can carry.
//
// Each function runs on one core, with a weight that was measured: its use of a
// core. The problem is that of scheduling jobs on identical machines (P||Cmax,
// NP-hard). Greedy is LPT (Graham, 1969), which Zhao's thesis (section 5.3.3,
// algorithm 1) takes: at most 4/3 - 1/(3m) of the best. Exact is branch and bound
// from there, within a number of steps and not a time, so that an answer depends
// on its arguments only.
//
// What a core spends on packets in interrupts is load that is there already: a
// core that carries much of it gets less, or nothing.
package cores
