"""The way in: what Dynamo and AOTAutograd are told, and what they say while they capture a model."""
