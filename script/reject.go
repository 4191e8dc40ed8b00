package script

import (
	"fmt"

	"example.com/svc/mta"
)

// Rejections returns the functions reject and disconnect, for the main module. They raise an *mta.Rejection that passes
// through pcall and error unchanged and is found in Go with errors.As (spec README section 4, functions.tsv svc reject
// and disconnect).
func Rejections() []Func {
	return []Func{
		Fn("reject", "Answers the peer with an SMTP reply code and text, by raising a rejection.",
			func(code int, text string) error {
				if err := checkCode(code); err != nil {
					return err
				}
				return mta.Reject(code, text)
			}, "code", "message"),
		Fn("disconnect", "Answers the peer with an SMTP reply code and text and ends the session.",
			func(code int, text string, mode *string) error {
				if err := checkCode(code); err != nil {
					return err
				}
				m, err := disconnectMode(mode)
				if err != nil {
					return err
				}
				return mta.Disconnect(code, text, m)
			}, "code", "message", "mode?"),
	}
}

func checkCode(code int) error {
	if code < 400 || code > 599 {
		return fmt.Errorf("code %d is not between 400 and 599", code)
	}
	return nil
}

func disconnectMode(mode *string) (mta.DisconnectMode, error) {
	if mode == nil {
		return mta.ForceDisconnect, nil
	}
	switch *mode {
	case "ForceDisconnect":
		return mta.ForceDisconnect, nil
	case "FollowWith421":
		return mta.FollowWith421, nil
	case "If421":
		return mta.If421, nil
	}
	return 0, fmt.Errorf("mode %q is none of ForceDisconnect, FollowWith421, If421", clip(*mode))
}
