package embed

import (
	"errors"

	"sublet/embed/calendar"
	"sublet/vnet"
)

// Embed finds where request fits into what cal leaves of sub in every
// instant of window, which begins the request's stages. It changes nothing:
// book the result's Bookings to keep it. The error is *Infeasible when no
// embedding was found, and another when the request or substrate is malformed.
func Embed(sub vnet.Substrate, cal *calendar.Calendar, request vnet.Request, window vnet.Window) (vnet.Mapping, error) {
	return vnet.Mapping{}, errors.New("embed: not reached")
}
