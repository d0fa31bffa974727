module example.com/pantry

go 1.19
