import pytest

from stockroom.routes import RouteMap


@pytest.fixture
def site():
    routes = RouteMap()
    routes.connect("dock", "hall", 4)
    routes.connect("hall", "office", 1)
    routes.connect("dock", "office", 7)
    routes.connect("office", "attic", 2)
    routes.connect("shed", "yard", 3)
    return routes


def test_neighbours_nearest_first(site):
    assert site.neighbours("office") == ["hall", "attic", "dock"]


def test_lanes_go_both_ways(site):
    assert "shed" in site.neighbours("yard")
    assert "yard" in site.neighbours("shed")


def test_shorter_lane_stays():
    routes = RouteMap()
    routes.connect("dock", "hall", 4)
    routes.connect("hall", "dock", 9)
    assert routes.shortest("dock", "hall") == (4, ["dock", "hall"])


def test_shortest_route_may_have_more_lanes(site):
    assert site.shortest("dock", "attic") == (7, ["dock", "hall", "office", "attic"])


def test_route_to_itself(site):
    assert site.shortest("hall", "hall") == (0, ["hall"])


def test_no_route(site):
    with pytest.raises(LookupError, match="no route"):
        site.shortest("dock", "shed")


def test_unknown_place(site):
    with pytest.raises(KeyError):
        site.shortest("dock", "roof")


def test_within_hops(site):
    assert site.within("hall", 0) == {"hall"}
    assert site.within("hall", 1) == {"hall", "dock", "office"}
    assert site.within("hall", 2) == {"hall", "dock", "office", "attic"}


def test_simple_routes(site):
    assert site.simple_routes("dock", "attic", 2) == 1
    assert site.simple_routes("dock", "attic", 3) == 2
