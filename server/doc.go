// Package server drives the book: it owns the book, the store and the clock,
// and serves the API whose wire types and client are package lease/api.
// Whatever changes the book is saved before anyone hears of it: a lease that
// was answered survives any crash, and a plan that an agent was given is never
// taken back by one.
//
//	caller --socket--> identity, limits --> handler --> Book --> Store --> answer
//	                   (trust)                 |
//	                                           +--> agent (exec, probe, capture), proxied
package server
