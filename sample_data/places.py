"""Where the sample's people and companies are: cities with regions and postal codes, streets, country spellings.

A postal mask is a postal code in which # stands for a digit; what surrounds the digits is kept, leading
zeros included.
"""

from __future__ import annotations

from .names import COUNTRIES

# country | weight | spellings of the country | city/region/postal mask; ... | street; ...
_PLACES = """
US|22|USA, US, United States, U.S.A., United States of America, usa|Boston/Massachusetts/021##; Austin/Texas/787##; Portland/Oregon/972##; Chicago/Illinois/606##; Coeur d'Alene/Idaho/838##|Main Street; Oak Avenue; 5th Avenue; Lakeview Drive
GB|8|United Kingdom, UK, England, Great Britain, GB|London/Greater London/EC1A #BB; Leeds/West Yorkshire/LS1 #DF; King's Lynn/Norfolk/PE30 #AB; Bristol/Avon/BS1 #QA|High Street; Station Road; Queen's Road; Mill Lane
AU|3|Australia, AU, AUS|Sydney/New South Wales/20##; Melbourne/Victoria/30##; Hobart/Tasmania/70##|George Street; Flinders Lane; Bourke Street
CA|4|Canada, CA, CAN, Kanada|Montréal/Québec/H2X #A#; Toronto/Ontario/M5V #T#; Trois-Rivières/Québec/G9A #B#|rue Saint-Denis; King Street West; chemin Sainte-Foy
FR|6|France, FR, FRA, Frankreich|Paris/Île-de-France/750##; Besançon/Doubs/250##; Orléans/Loiret/450##; Nîmes/Gard/300##|rue de l'Église; avenue Foch; rue du Général Leclerc; place d'Armes
DE|14|Germany, Deutschland, DE, DEU, GERMANY, Allemagne|München/Bayern/80###; Köln/Nordrhein-Westfalen/50###; Dresden/Sachsen/01###; Düsseldorf/Nordrhein-Westfalen/40###; Gießen/Hessen/35###|Hauptstraße; Bahnhofstraße; Am Mühlbach; Königsallee
AT|4|Austria, Österreich, AT, AUT|Wien/Wien/1##0; Graz/Steiermark/80##; Sankt Pölten/Niederösterreich/31##|Mariahilfer Straße; Getreidegasse; Landstraßer Gürtel
CH|3|Switzerland, Schweiz, Suisse, CH, CHE|Zürich/Zürich/80##; Genève/Genève/12##; Bern/Bern/30##|Bahnhofstrasse; Rue du Rhône; Marktgasse
ES|4|Spain, España, ES, Spanien|Madrid/Madrid/280##; Málaga/Andalucía/290##; A Coruña/Galicia/150##; Cádiz/Andalucía/110##|Calle Mayor; Avenida de la Constitución; Plaza España
MX|2|Mexico, México, MX, MEX|Ciudad de México/CDMX/06###; Mérida/Yucatán/97###; Querétaro/Querétaro/76###|Avenida Juárez; Calle Hidalgo; Paseo Montejo
BR|3|Brazil, Brasil, BR, Brasilien|São Paulo/SP/01###-0##; Brasília/DF/70###-0##; Florianópolis/SC/88###-0##|Rua da Consolação; Avenida Paulista; Rua São João
PT|2|Portugal, PT, PRT|Lisboa/Lisboa/1###-0##; Évora/Alentejo/70##-0##; Guimarães/Braga/48##-0##|Rua Augusta; Avenida da República; Rua da Conceição
IT|4|Italy, Italia, IT, ITA, Italien|Milano/Lombardia/201##; Roma/Lazio/001##; L'Aquila/Abruzzo/671##; Forlì/Emilia-Romagna/471##|Via Roma; Corso Garibaldi; Piazza dell'Unità
NL|3|Netherlands, The Netherlands, Nederland, Holland, NL|Amsterdam/Noord-Holland/10## AB; Utrecht/Utrecht/35## CD; 's-Hertogenbosch/Noord-Brabant/52## EF|Herengracht; Kerkstraat; Oudegracht
PL|3|Poland, Polska, PL, POL|Łódź/Łódzkie/90-###; Kraków/Małopolskie/30-###; Gdańsk/Pomorskie/80-###|ul. Długa; ul. Mickiewicza; ul. Świętokrzyska
CZ|2|Czech Republic, Czechia, CZ, CZE|Praha/Praha/110 ##; Plzeň/Plzeňský kraj/301 ##; Děčín/Ústecký kraj/405 ##|Národní; Vinohradská; Žižkova
SE|2|Sweden, Sverige, SE, Schweden|Göteborg/Västra Götaland/411 ##; Malmö/Skåne/211 ##; Örebro/Örebro/702 ##|Storgatan; Drottninggatan; Kungsgatan
DK|2|Denmark, Danmark, DK, Dänemark|København/Hovedstaden/1###; Aarhus/Midtjylland/80##; Ærøskøbing/Syddanmark/59##|Strøget; Vestergade; Nørregade
TR|2|Turkey, Türkiye, TR, TUR|İstanbul/İstanbul/34###; İzmir/İzmir/35###; Eskişehir/Eskişehir/26###|İstiklal Caddesi; Atatürk Bulvarı; Cumhuriyet Caddesi
GR|1|Greece, GR, GRC, Griechenland|Αθήνα/Αττική/10# ##; Θεσσαλονίκη/Κεντρική Μακεδονία/54# ##|Οδός Ερμού; Λεωφόρος Συγγρού
UA|1|Ukraine, UA, UKR|Київ/Київ/010##; Львів/Львівська область/790##; Одеса/Одеська область/650##|вулиця Хрещатик; проспект Шевченка
IL|1|Israel, IL, ISR|תל אביב/תל אביב/61#####; ירושלים/ירושלים/91#####; חיפה/חיפה/31#####|רחוב הרצל; שדרות רוטשילד
EG|1|Egypt, EG, EGY, Ägypten|القاهرة/القاهرة/115##; الإسكندرية/الإسكندرية/215##|شارع التحرير; شارع النيل
IN|3|India, IN, IND, Indien|Mumbai/Maharashtra/4000##; Bengaluru/Karnataka/5600##; दिल्ली/दिल्ली/1100##|MG Road; Linking Road; Nehru Marg
CN|2|China, CN, CHN|北京/北京/1000##; 上海/上海/2000##; 深圳/广东/5180##|长安街; 南京路; 人民路
JP|2|Japan, JP, JPN|東京/東京都/100-00##; 大阪/大阪府/530-00##; 京都/京都府/600-80##|銀座; 御堂筋; 烏丸通
KR|1|South Korea, KR, KOR|서울/서울/04###; 부산/부산/48###; 인천/인천/22###|세종대로; 해운대로; 중앙로
VN|1|Vietnam, VN, VNM|Hà Nội/Hà Nội/100###; Đà Nẵng/Đà Nẵng/550###; Huế/Thừa Thiên Huế/530###|Phố Huế; Đường Lê Lợi; Trần Hưng Đạo
"""

_LINES = {line.split("|")[0]: line.split("|")[1:] for line in _PLACES.strip().splitlines()}

WEIGHTS: list[float] = [float(_LINES[c][0]) for c in COUNTRIES]
"""How often each country of COUNTRIES occurs."""


class PlacePool:
    """Values over all countries in one list; country n has `size[n]` of them from `start[n]`."""

    def __init__(self, values: list[list[str]]) -> None:
        self.values = [v for part in values for v in part]
        self.size = [len(part) for part in values]
        self.start = [sum(self.size[:n]) for n in range(len(values))]


SPELLINGS = PlacePool([[s.strip() for s in _LINES[c][1].split(",")] for c in COUNTRIES])
"""Country spellings; the first of each country is the commonest."""

_CITIES = [[tuple(city.strip().split("/")) for city in _LINES[c][2].split(";")] for c in COUNTRIES]
CITIES = PlacePool([[city for city, _, _ in part] for part in _CITIES])
"""Cities; REGIONS and POSTAL_MASKS stand at the same positions."""
REGIONS = PlacePool([[region for _, region, _ in part] for part in _CITIES])
POSTAL_MASKS = PlacePool([[mask for _, _, mask in part] for part in _CITIES])
STREETS = PlacePool([[s.strip() for s in _LINES[c][3].split(";")] for c in COUNTRIES])
