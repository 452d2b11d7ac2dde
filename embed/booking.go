package embed

import (
	"errors"

	"sublet/embed/calendar"
	"sublet/vnet"
)

// Bookings lists what a mapping takes of the substrate during each stage's
// part of window, one booking per element and span, in a fixed order. Release
// the same list to give it back. An error says that the mapping does not
// belong to the request or the substrate.
func Bookings(sub vnet.Substrate, request vnet.Request, window vnet.Window, mapping vnet.Mapping) ([]calendar.Booking, error) {
	return nil, errors.New("embed: not reached")
}
