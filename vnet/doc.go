// Package vnet holds the words of Sublet: identifiers, units, the tenant's
// Request, the operator's Substrate, and what admission makes of the two:
// Mapping, Lease and Rejection.
//
// It is data with parsing, printing and validation, and imports nothing of
// ours. Rates are bit/s of Ethernet frames including the 14-byte header and
// without preamble or FCS; sizes are bytes; times are time.Duration.
package vnet
