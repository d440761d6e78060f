package sqlite

// giveAway has nothing to do: a file inherits the rights of its folder.
func giveAway(string, string) error { return nil }
